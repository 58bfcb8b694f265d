// Shared by kernels that compute tiles of fragments. Expects their constants and params, and
// fragment_emulation.glsl before it if fragments are emulated.
#ifndef HEARTH_COOPMAT_TILE_GLSL
#define HEARTH_COOPMAT_TILE_GLSL

#include "common/lane_id.glsl"

#ifndef EMULATE_FRAGMENTS
// Orders shared memory within the subgroup.
void subgroup_shared_barrier() {
  controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared,
                 gl_SemanticsAcquireRelease);
}
#endif

// What a workgroup computes: part number `split` of `splits` along k, of one tile.
struct Work {
  uint row_tile, output_tile;
  uint split, splits;
  uint tail_tile;  // index among the tail tiles; if kTailSplits > 1 and splits > 1
};

Work find_work() {
  Work work = Work(gl_WorkGroupID.x, gl_WorkGroupID.y, gl_WorkGroupID.z, kSplits, 0);
#ifndef EXPERTS
  if (kTailSplits > 1) {
    const uint beyond = max(gl_WorkGroupID.x, params.whole_tiles) - params.whole_tiles;
    const uint tile = min(gl_WorkGroupID.x, params.whole_tiles + beyond / kTailSplits);
    const uint row_tiles = DIVIDE_UP(params.rows, kTileRows);
    const bool whole = tile < params.whole_tiles;
    work = Work(tile % row_tiles, tile / row_tiles, whole ? 0 : beyond % kTailSplits,
                  whole ? 1 : kTailSplits, beyond / kTailSplits);
  }
#endif
  return work;
}

// The row of the matrix that is column `column` of the tile at `first_output`. With gates, every other
// fragment holds gates, and the one after it their ups.
uint weight_row(uint first_output, uint column) {
  if (kGate == kGateNone) return min(first_output + column, params.outputs - 1);
  const uint results = params.outputs / 2, block = column / kFragmentOutputs;
  const uint n = first_output / 2 + block / 2 * kFragmentOutputs + column % kFragmentOutputs;
  return min(n, results - 1) + block % 2 * results;
}

#ifdef EXPERTS
// What the sums begin with: the biases of their columns, in every row. Fragments past the last output
// read other biases, or what follows them: there must be room for a fragment.
void begin_sums(out Fragment sums[kSums], uint first_output) {
  [[unroll]] for (uint f = 0; f < kSums; ++f) {
    const uint column = subgroup_id() % kSubgroupsAcross * kSubgroupOutputs +
                        f % kFragmentsAcross * kFragmentOutputs;
    sums[f] = Fragment(0.0);
    if ((kEpilogue & kEpilogueBias) != 0) {
      const uint first = expert * params.outputs + weight_row(first_output, column) / 4 * 4;
      coopMatLoad(sums[f], F32x4(params.bias).at, first / 4, 0, gl_CooperativeMatrixLayoutRowMajor);
      sums[f] *= kDecodeScale;
    }
  }
}
#endif

// A view of x for loads that never alias this kernel's stores.
layout(buffer_reference, std430, buffer_reference_align = 16) queuefamilycoherent restrict readonly buffer
    FreshX {
  uvec4 at[];
};

#endif
