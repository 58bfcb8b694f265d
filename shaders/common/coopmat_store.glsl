// Stores the sums of a tile of matmul_coopmat, matmul_direct or matmul_wide: as results, with the epilogue
// of params/matmul.h; as partial sums for matmul_reduce.comp; or, for a tail tile, as partial sums for
// the last of its workgroups.
//
// Include after everything else in such a kernel: expects its constants, coopmat_staging.glsl, its Work
// and its shared array `tiles`, which must have room for every subgroup's staging area.
#ifndef HEARTH_COOPMAT_STORE_GLSL
#define HEARTH_COOPMAT_STORE_GLSL
#define LAST_WORKGROUP_SCRATCH tiles[0].x
#include "common/last_workgroup.glsl"

layout(buffer_reference, std430, buffer_reference_align = 8) nonprivate writeonly buffer HalfQuads {
  uvec2 at[];
};

// Stores partial sums. `first` is where the tile begins, in floats. Fragments from column `end` of the
// tile on are dropped.
void store_partials(Fragment sums[kSums], uint64_t to, uint first, uint stride, uint end) {
  F32x4 parts = F32x4(to);
  [[unroll]] for (uint f = 0; f < kSums; ++f) {
    const uint row = subgroup_id() / kSubgroupsAcross * kSubgroupRows +
                     f / kFragmentsAcross * kFragmentRows;
    const uint column = subgroup_id() % kSubgroupsAcross * kSubgroupOutputs +
                        f % kFragmentsAcross * kFragmentOutputs;
    if (column < end)
      coopMatStore(sums[f], parts.at, (first + row * stride + column) / 4, stride / 4,
                   gl_CooperativeMatrixLayoutRowMajor);
  }
}

// Stores four neighbouring gated results from n on.
void store_gated_quad(uint row, uint n, vec4 value) {
  const uint results = params.outputs / 2;
  if (row >= params.rows || n >= results) return;
  const uint quad = (row * results + n) / 4;
  if (kHalfResults != 0) {
    const vec4 halves = nearest_half(value);
    HalfQuads(params.y).at[quad] = uvec2(packHalf2x16(halves.xy), packHalf2x16(halves.zw));
  } else {
    F32x4(params.y).at[quad] = value;
  }
}

// Where this subgroup's staging area has four neighbouring results of a row.
uint staging_at(uint row, uint quad) { return subgroup_id() * kStagingVecs + row * kStagingStride + quad; }

void stage_fragment(Fragment results, uint fragment) {
  coopMatStore(results, tiles, staging_at(0, fragment * kFragmentOutputs / 4), kStagingStride,
               gl_CooperativeMatrixLayoutRowMajor);
}

// A gate and its up are the same element of neighbouring fragments, which have the same layout, so one
// lane holds both. Results go out through the subgroup's staging area.
void store_gated(Fragment sums[kSums], uint first_row, uint first_output) {
  const uint row = first_row + subgroup_id() / kSubgroupsAcross * kSubgroupRows;
  const uint column = (first_output + subgroup_id() % kSubgroupsAcross * kSubgroupOutputs) / 2;
  barrier();  // the operands may still be read
  [[unroll]] for (uint first = 0; first < kSums; first += 2 * kStagingFragments) {
    const uint i = first / kFragmentsAcross, j = first % kFragmentsAcross / 2;
    [[unroll]] for (uint g = 0; g < kStagingFragments; ++g) {
      const uint f = first + 2 * g;
      Fragment results = sums[f];
      [[unroll]] for (uint e = 0; e < results.length(); ++e)
        results[e] = GATED(sums[f][e], sums[f + 1][e]);
      stage_fragment(results, g);
    }
    subgroup_shared_barrier();
    for (uint v = lane_id(); v < kStagingResults; v += kSubgroupSize)
      store_gated_quad(row + i * kFragmentRows + v / kStagingRowQuads,
                      column + j * kFragmentOutputs + v % kStagingRowQuads * 4,
                      uintBitsToFloat(tiles[staging_at(v / kStagingRowQuads, v % kStagingRowQuads)]));
    subgroup_shared_barrier();
  }
}

// The same if subgroups have an odd number of fragments across, so that some gates are in another
// subgroup than their ups: all fragments go through shared memory, one row of fragments at a time.
void store_gated_across(Fragment sums[kSums], uint first_row, uint first_output) {
  const uint row_quads = kFragmentOutputs / 4;
  const uint row_pairs = kSubgroupsAcross * kFragmentsAcross / 2;  // per row of subgroups
  const uint pair_quads = kSubgroups * kFragmentsAcross / 2 * kFragmentQuads;
  [[unroll]] for (uint i = 0; i < kFragmentsDown; ++i) {
    barrier();  // what was there may still be read
    [[unroll]] for (uint j = 0; j < kFragmentsAcross; ++j)
      coopMatStore(sums[i * kFragmentsAcross + j], tiles,
                   (subgroup_id() * kFragmentsAcross + j) * kFragmentQuads, row_quads,
                   gl_CooperativeMatrixLayoutRowMajor);
    barrier();
    for (uint at = gl_LocalInvocationIndex; at < pair_quads; at += gl_WorkGroupSize.x) {
      const uint pair = at / kFragmentQuads, v = at % kFragmentQuads;
      const uint gate = pair * 2 * kFragmentQuads + v;
      store_gated_quad(
          first_row + pair / row_pairs * kSubgroupRows + i * kFragmentRows + v / row_quads,
          first_output / 2 + pair % row_pairs * kFragmentOutputs + v % row_quads * 4,
          GATED_QUAD(uintBitsToFloat(tiles[gate]), uintBitsToFloat(tiles[gate + kFragmentQuads])));
    }
  }
}

void store_outputs(Fragment sums[kSums], uint first_row, uint first_output) {
  const uint row = first_row + subgroup_id() / kSubgroupsAcross * kSubgroupRows;
  const uint column = first_output + subgroup_id() % kSubgroupsAcross * kSubgroupOutputs;
  const uint stagings = kFragmentsAcross / kStagingFragments;  // per row of fragments
  const uint lane_quads = DIVIDE_UP(kStagingResults, kSubgroupSize);
  barrier();  // the operands may still be read
  [[unroll]] for (uint i = 0; i < kFragmentsDown; ++i) {
    // The residuals of a whole row of fragments are loaded together, so that they are waited for once.
    vec4 residuals[stagings * lane_quads];
    [[unroll]] for (uint at = 0; at < stagings * lane_quads; ++at) {
      const uint j = at / lane_quads * kStagingFragments, v = lane_id() + at % lane_quads * kSubgroupSize;
      residuals[at] = load_residual_quad(row + i * kFragmentRows + v / kStagingRowQuads,
                                        column + j * kFragmentOutputs + v % kStagingRowQuads * 4);
    }
    [[unroll]] for (uint s = 0; s < stagings; ++s) {
      const uint j = s * kStagingFragments;
      [[unroll]] for (uint f = 0; f < kStagingFragments; ++f)
        stage_fragment(sums[i * kFragmentsAcross + j + f], f);
      subgroup_shared_barrier();
      [[unroll]] for (uint at = 0; at < lane_quads; ++at) {
        const uint v = lane_id() + at * kSubgroupSize;
        if (v < kStagingResults)
          store_output_quad(row + i * kFragmentRows + v / kStagingRowQuads,
                           column + j * kFragmentOutputs + v % kStagingRowQuads * 4,
                           uintBitsToFloat(tiles[staging_at(v / kStagingRowQuads, v % kStagingRowQuads)]),
                           residuals[s * lane_quads + at]);
      }
      subgroup_shared_barrier();
    }
  }
}

#ifndef EXPERTS
// Four neighbouring sums of a tail tile: the partial sums of its workgroups, added in the order of k.
vec4 add_partials(uint first, uint quad) {
  F32x4 parts = F32x4(params.tail_partials);
  vec4 sum = vec4(0.0);
  [[unroll]] for (uint s = 0; s < kTailSplits; ++s)
    sum += parts.at[first + s * (kTileRows * kTileOutputs / 4) + quad];
  return sum;
}

// Stores this workgroup's partial sums of a tail tile; the last of the tile's workgroups adds them up
// and stores the results.
void store_tail_split(Fragment sums[kSums], Work work, uint first_row, uint first_output) {
  const uint tile_quads = kTileRows * kTileOutputs / 4;
  const uint first = work.tail_tile * kTailSplits * tile_quads;
  store_partials(sums, params.tail_partials, (first + work.split * tile_quads) * 4, kTileOutputs,
              kTileOutputs);
  if (!is_last_workgroup(params.counts, work.tail_tile, kTailSplits)) return;
  const bool gated = kGate != kGateNone;
  const uint fragment_quads = kFragmentOutputs / 4;  // per row
  const uint row_quads = kTileOutputs / (gated ? 8 : 4), quads = kTileRows * row_quads;
  const uint kAtOnce = 4;  // results whose loads are in flight together
  for (uint base = gl_LocalInvocationIndex; base < quads; base += kAtOnce * gl_WorkGroupSize.x) {
    vec4 values[kAtOnce], others[kAtOnce];  // others: ups or residuals
    [[unroll]] for (uint i = 0; i < kAtOnce; ++i) {
      const uint at = min(base + i * gl_WorkGroupSize.x, quads - 1);
      const uint row = at / row_quads, column = at % row_quads;
      // Every other fragment holds gates, and the one after it their ups.
      const uint quad = gated ? row * row_quads * 2 + column + column / fragment_quads * fragment_quads
                             : at;
      values[i] = add_partials(first, quad);
      others[i] = gated ? add_partials(first, quad + fragment_quads)
                        : load_residual_quad(first_row + row, first_output + column * 4);
    }
    [[unroll]] for (uint i = 0; i < kAtOnce; ++i) {
      const uint at = base + i * gl_WorkGroupSize.x;
      const uint row = first_row + at / row_quads, column = at % row_quads * 4;
      if (at >= quads) break;
      if (gated)
        store_gated_quad(row, first_output / 2 + column,
                        activate(values[i], kGate == kGateGelu) * others[i]);
      else
        store_output_quad(row, first_output + column, values[i], others[i]);
    }
  }
}

#endif

void store(Fragment sums[kSums], Work work, uint first_row, uint first_output) {
#ifdef EXPERTS
  if (kGate != kGateNone && kFragmentsAcross % 2 != 0) {
    store_gated_across(sums, first_row, first_output);
  } else if (kGate != kGateNone) {
    store_gated(sums, first_row, first_output);
  } else {
    store_outputs(sums, first_row, first_output);
  }
#else
  if (kTailSplits > 1 && work.splits > 1) {
    store_tail_split(sums, work, first_row, first_output);
  } else if (kGate != kGateNone && kFragmentsAcross % 2 != 0) {
    store_gated_across(sums, first_row, first_output);
  } else if (kGate != kGateNone) {
    store_gated(sums, first_row, first_output);
  } else if (kSplits > 1) {
    const uint part_row = work.split * gl_NumWorkGroups.x * kTileRows + first_row;
    store_partials(sums, params.y, part_row * params.partial_stride + first_output, params.partial_stride,
                params.outputs - first_output);
  } else {
    store_outputs(sums, first_row, first_output);
  }
#endif
}

#endif
