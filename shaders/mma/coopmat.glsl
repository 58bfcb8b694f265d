// Matrix engine on VK_KHR_cooperative_matrix: f16 operands, f32 sums. A subgroup owns kSubgroupRows x
// kSubgroupOutputs sums, in fragments of the shape the device has. What an engine is: scalar.glsl.
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require

#define TileVec f16vec4
// Activations beyond the range of f16 are cut off rather than made infinite.
TileVec to_tile(vec4 value) { return f16vec4(clamp(value, -65504.0, 65504.0)); }

layout(constant_id = 6) const uint kSubgroupRows = 32;
layout(constant_id = 7) const uint kSubgroupOutputs = 32;
layout(constant_id = 8) const uint kFragmentRows = 16;  // M of a fragment
layout(constant_id = 9) const uint kFragmentOutputs = 16;
layout(constant_id = 10) const uint kFragmentInputs = 16;
layout(constant_id = 11) const uint kSubgroups = 4;  // in a group

shared TileVec x_tile[kTileRows * kTileStride];
shared TileVec w_tile[kTileOutputs * kTileStride];
// Sums pass through here, a fragment a subgroup at a time, on their way out.
shared float store_slots[kSubgroups * kFragmentRows * kFragmentOutputs];

const uint kSubgroupsAcross = kTileOutputs / kSubgroupOutputs;
const uint kFragmentsDown = kSubgroupRows / kFragmentRows;
const uint kFragmentsAcross = kSubgroupOutputs / kFragmentOutputs;

#define Fragment \
  coopmat<float, gl_ScopeSubgroup, kFragmentRows, kFragmentOutputs, gl_MatrixUseAccumulator>
const uint kSums = kFragmentsDown * kFragmentsAcross;
#define MmaSums Fragment sums[kSums]

void mma_clear(out MmaSums) {
  [[unroll]] for (uint i = 0; i < kSums; ++i) sums[i] = Fragment(0.0);
}

void mma_step(inout MmaSums) {
  const uint row = gl_SubgroupID / kSubgroupsAcross * kSubgroupRows;
  const uint column = gl_SubgroupID % kSubgroupsAcross * kSubgroupOutputs;
  for (uint k = 0; k < kTileInputs; k += kFragmentInputs) {
    coopmat<float16_t, gl_ScopeSubgroup, kFragmentRows, kFragmentInputs, gl_MatrixUseA>
        x[kFragmentsDown];
    [[unroll]] for (uint i = 0; i < kFragmentsDown; ++i)
      coopMatLoad(x[i], x_tile, (row + i * kFragmentRows) * kTileStride + k / 4, kTileStride,
                  gl_CooperativeMatrixLayoutRowMajor);
    [[unroll]] for (uint j = 0; j < kFragmentsAcross; ++j) {
      // w_tile is [outputs, k]: as a K x N matrix its columns lie one after the other.
      coopmat<float16_t, gl_ScopeSubgroup, kFragmentInputs, kFragmentOutputs, gl_MatrixUseB> w;
      coopMatLoad(w, w_tile, (column + j * kFragmentOutputs) * kTileStride + k / 4, kTileStride,
                  gl_CooperativeMatrixLayoutColumnMajor);
      [[unroll]] for (uint i = 0; i < kFragmentsDown; ++i)
        sums[i * kFragmentsAcross + j] =
            coopMatMulAdd(x[i], w, sums[i * kFragmentsAcross + j]);
    }
  }
}

void mma_store(MmaSums, uint first_row, uint first_output) {
  const uint row = first_row + gl_SubgroupID / kSubgroupsAcross * kSubgroupRows;
  const uint column = first_output + gl_SubgroupID % kSubgroupsAcross * kSubgroupOutputs;
  const uint slot = gl_SubgroupID * kFragmentRows * kFragmentOutputs;
  [[unroll]] for (uint i = 0; i < kFragmentsDown; ++i) {
    [[unroll]] for (uint j = 0; j < kFragmentsAcross; ++j) {
      barrier();
      coopMatStore(sums[i * kFragmentsAcross + j], store_slots, slot, kFragmentOutputs,
                   gl_CooperativeMatrixLayoutRowMajor);
      barrier();
      for (uint e = gl_SubgroupInvocationID; e < kFragmentRows * kFragmentOutputs;
           e += gl_SubgroupSize)
        store_sum(row + i * kFragmentRows + e / kFragmentOutputs,
                  column + j * kFragmentOutputs + e % kFragmentOutputs, store_slots[slot + e]);
    }
  }
}
