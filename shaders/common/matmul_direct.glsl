// The body of matmul_direct.comp, which describes it, and of matmul_direct_emulated.comp.
#ifndef HEARTH_MATMUL_DIRECT_GLSL
#define HEARTH_MATMUL_DIRECT_GLSL
#include "common/kernel.glsl"
#include "params/matmul_direct.h"
#include "common/matmul_lanes.glsl"

// The names that coopmat_store.glsl expects: a tile is one row of subgroups, and there are no tail
// splits.
const uint kTailSplits = 1;
const uint kSubgroupRows = kTileRows;
const uint kSubgroupsAcross = kSubgroups;
const uint kFragmentsDown = kTileRows / kFragmentRows;
const uint kFragmentsAcross = kSubgroupOutputs / kFragmentOutputs;
const uint kSums = kFragmentsDown * kFragmentsAcross;

// Four lanes load one step of a row of weights, each kLaneVecs vecs (as halves): lanes take turns, vec by
// vec, if weights are halves, so that neighbouring lanes read neighbouring bytes; otherwise each lane
// takes whole pieces.
const uint kLaneVecs = 4;
const uint kStep = 4 * kLaneVecs * kVecHalves;  // inputs
const bool kInterleaved = kChunkWeights == kVecHalves;
const uint kOutputChunks = kLaneVecs / kChunkVecs;  // of weights, per output
const uint kLaneChunks = kFragmentsAcross * kOutputChunks;
const uint kWeightVecs = kFragmentsAcross * kLaneVecs;

// Shared memory is counted in vecs of 16 bytes: a lane's four words of a fragment. A step of x is [rows
// / 16, fragments along k, lanes]. At the end of the kernel the same memory stages results.
const uint kFragmentsAlong = 2 * kLaneVecs;
const uint kXVecs = kFragmentsDown * kFragmentsAlong * kSubgroupSize;
const uint kStagingFragments = 1;
#include "common/coopmat_staging.glsl"
const uint kAllStagingVecs = kSubgroups * kStagingVecs;
shared uvec4 tiles[kBuffers * kXVecs > kAllStagingVecs ? kBuffers * kXVecs : kAllStagingVecs];

// An invocation loads vecs of x in pairs, from rows 8 apart.
const uint kXPairs = kXVecs / 2;
const uint kXPairLoads = DIVIDE_UP(kXPairs, gl_WorkGroupSize.x);
const uint kXLoads = 2 * kXPairLoads;

#include "common/coopmat_tile.glsl"

// The vecs of a pair: x = the first row, y = which of the four lanes, z = which of that lane's vecs.
// Neighbouring pairs differ in the lane, then in the row, so that their words are adjacent in shared
// memory.
uvec3 x_pair_at(uint pair) {
  const uint vec = pair / 8 % kLaneVecs;
  const uint row = pair / (8 * kLaneVecs) * 2 + pair / 4 % 2;  // without the rows 8 further on
  return uvec3(row / 8 * 16 + row % 8, pair % 4, vec);
}

// Where this invocation's loads begin, in chunks and vecs.
struct Source {
  Planes planes;
  uint chunks[kFragmentsAcross], vecs[kXLoads];
};

void find_source(out Source source, uint first_row, uint first_output) {
  source.planes = planes_at(EXPERT_WEIGHTS, params.outputs * (params.inputs / kBlockWeights));
  const uint lane_output = subgroup_id() * kSubgroupOutputs + lane_id() / 4;
  [[unroll]] for (uint j = 0; j < kFragmentsAcross; ++j)
    source.chunks[j] = weight_row(first_output, lane_output + j * kFragmentOutputs) *
                          (params.inputs / kChunkWeights) +
                      lane_id() % 4;
  [[unroll]] for (uint i = 0; i < kXLoads; ++i) {
    const uvec3 at = x_pair_at(gl_LocalInvocationIndex + i / 2 * gl_WorkGroupSize.x);
    const uint row = X_ROW(min(first_row + at.x + i % 2 * 8, params.rows - 1));
    source.vecs[i] = row * (params.inputs / kVecHalves) + (kInterleaved ? at.z * 4 + at.y
                                                                : at.y * kLaneVecs + at.z);
  }
}

#ifdef EXPERTS
// Rows may end within a step. Chunks past the end are clamped to the row's last, and their x is 0.
uint chunk_index(Source source, uint chunk, uint k) {
  const uint chunks = params.inputs / kChunkWeights;
  const uint place = lane_id() % 4 + k / kChunkWeights + chunk % kOutputChunks * 4;
  return source.chunks[chunk / kOutputChunks] - lane_id() % 4 + min(place, chunks - 1);
}

// Whether load i of x is within its row.
bool is_inside(uint i, uint k) {
  const uvec3 at = x_pair_at(gl_LocalInvocationIndex + i / 2 * gl_WorkGroupSize.x);
  const uint vec = kInterleaved ? at.z * 4 + at.y : at.y * kLaneVecs + at.z;
  return k + vec * kVecHalves < params.inputs;
}
#else
uint chunk_index(Source source, uint chunk, uint k) {
  return source.chunks[chunk / kOutputChunks] + k / kChunkWeights + chunk % kOutputChunks * 4;
}
#endif

void fetch_weights(out RawChunk chunks[kLaneChunks], Source source, uint k) {
  [[unroll]] for (uint u = 0; u < kLaneChunks; ++u)
    chunks[u] = load_raw_chunk(source.planes, chunk_index(source, u, k));
}

void fetch_x(out uvec4 xs[kXLoads], Source source, uint k) {
#ifdef EXPERTS
  [[unroll]] for (uint i = 0; i < kXLoads; ++i) {
    xs[i] = uvec4(0);
    if (is_inside(i, k)) xs[i] = FreshX(params.x).at[source.vecs[i] + k / kVecHalves];
  }
#else
  [[unroll]] for (uint i = 0; i < kXLoads; ++i)
    xs[i] = FreshX(params.x).at[source.vecs[i] + k / kVecHalves];
#endif
}

void decode(RawChunk chunks[kLaneChunks], Source source, uint k, out uvec4 weights[kWeightVecs]) {
  [[unroll]] for (uint u = 0; u < kLaneChunks; ++u) {
    uvec4 halves[kChunkVecs];
    decode_chunk(chunks[u], chunk_index(source, u, k), halves);
    [[unroll]] for (uint v = 0; v < kChunkVecs; ++v) weights[u * kChunkVecs + v] = halves[v];
  }
}

void stage_x(uvec4 xs[kXLoads], uint start) {
  [[unroll]] for (uint i = 0; i < kXPairLoads; ++i) {
    const uint pair = gl_LocalInvocationIndex + i * gl_WorkGroupSize.x;
    const uvec3 at = x_pair_at(pair);
    const uint fragment = at.x / 16 * kFragmentsAlong + 2 * at.z;
    const uint place = start + fragment * kSubgroupSize + at.x % 8 * 4 + at.y;
    const uvec4 upper = xs[2 * i], lower = xs[2 * i + 1];
    if (kXPairs % gl_WorkGroupSize.x == 0 || pair < kXPairs) {
      tiles[place] = words_of_a(upper.xy, lower.xy);
      tiles[place + kSubgroupSize] = words_of_a(upper.zw, lower.zw);
    }
  }
}

void multiply(inout Fragment sums[kSums], uvec4 weights[kWeightVecs], uint start) {
  UNROLL for (uint slice = 0; slice < kFragmentsAlong; ++slice) {
    FragmentA x[kFragmentsDown];
    [[unroll]] for (uint i = 0; i < kFragmentsDown; ++i)
      set_a(x[i], tiles[start + (i * kFragmentsAlong + slice) * kSubgroupSize + lane_id()]);
    [[unroll]] for (uint j = 0; j < kFragmentsAcross; ++j) {
      const uvec4 vec = weights[j * kLaneVecs + slice / 2];
      FragmentB w;
      set_b(w, slice % 2 == 0 ? vec.xy : vec.zw);
      [[unroll]] for (uint i = 0; i < kFragmentsDown; ++i)
        sums[i * kFragmentsAcross + j] = coopMatMulAdd(x[i], w, sums[i * kFragmentsAcross + j]);
    }
  }
}

#include "common/coopmat_store.glsl"

void main() {
  const Work work = find_work();
#ifdef EXPERTS
  if (!begin_expert(work.row_tile)) {
    chain_done();
    return;
  }
#endif
  const uint first_row = work.row_tile * kTileRows;
  const uint first_output = work.output_tile * kTileOutputs;
  Source source;
  find_source(source, first_row, first_output);
#ifdef EXPERTS
  const uint steps = DIVIDE_UP(params.inputs, kStep);
#else
  const uint steps = params.inputs / kStep;
#endif
  const uint begin = steps * work.split / kSplits * kStep;
  const uint last = (steps * (work.split + 1) / kSplits - 1) * kStep;

  RawChunk chunks[kLaneChunks];
  uvec4 xs[kXLoads];
  Fragment sums[kSums];
#ifdef EXPERTS
  begin_sums(sums, first_output);
#else
  [[unroll]] for (uint i = 0; i < kSums; ++i) sums[i] = Fragment(0.0);
#endif
  fetch_weights(chunks, source, begin);  // in flight before this kernel waits for x
#ifndef EXPERTS
  chain_wait_fresh();
#endif
  fetch_x(xs, source, begin);
  for (uint k = begin; k <= last; k += kStep) {
    const uint start = kBuffers == 1 ? 0 : k / kStep % 2 * kXVecs;
    if (kBuffers == 1) barrier();  // the previous step may still be read
    stage_x(xs, start);
    barrier();
    uvec4 weights[kWeightVecs];
    decode(chunks, source, k, weights);
    fetch_weights(chunks, source, min(k + kStep, last));
    fetch_x(xs, source, min(k + kStep, last));
    multiply(sums, weights, start);
  }
  if (kDecodeScale != 1.0) {
    [[unroll]] for (uint i = 0; i < kSums; ++i) sums[i] *= 1.0 / kDecodeScale;
  }
  store(sums, work, first_row, first_output);
  chain_done();
}

#endif
