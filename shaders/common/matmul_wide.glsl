// The body of matmul_wide.comp, which describes it, and of matmul_wide_emulated.comp.
#ifndef HEARTH_MATMUL_WIDE_GLSL
#define HEARTH_MATMUL_WIDE_GLSL
#include "common/kernel.glsl"
#include "params/matmul_wide.h"
#include "common/matmul_lanes.glsl"

const uint kSubgroupsAcross = kTileOutputs / kSubgroupOutputs;
const uint kFragmentsDown = kSubgroupRows / kFragmentRows;
const uint kFragmentsAcross = kSubgroupOutputs / kFragmentOutputs;
const uint kPairsAcross = kFragmentsAcross / 2;
const uint kSums = kFragmentsDown * kFragmentsAcross;

// A row has kStepVecs vecs per step, of eight inputs each. Four lanes read them, each one of the first
// four vecs and one of the second four; each vec gives a lane its inputs of two fragments along k
// (slices).
const uint kStep = 64;  // inputs
const uint kStepVecs = kStep / kVecHalves;
const uint kSlices = kStep / 16;

// Shared memory is counted in vecs of 16 bytes: a lane's four words of a fragment of x, or of a pair of
// fragments of weights. Both operands are [rows or outputs / 16, slices, swizzled lanes]. At the end of
// the kernel the same memory stages results.
const uint kXVecs = kTileRows / 16 * kSlices * kSubgroupSize;
const uint kOperandVecs = kXVecs + kTileOutputs / 16 * kSlices * kSubgroupSize;
const uint kResultsAcross = kGate == kGateNone ? kFragmentsAcross : kFragmentsAcross / 2;
const uint kStagingFragments = kResultsAcross % 4 == 0 ? 4 : kResultsAcross % 2 == 0 ? 2 : 1;
#include "common/coopmat_staging.glsl"
const uint kAllStagingVecs = kSubgroups * kStagingVecs;
shared uvec4 tiles[kOperandVecs > kAllStagingVecs ? kOperandVecs : kAllStagingVecs];

// Where the words of lane 4 * row + lane are; in slices of the second four vecs, xor kSwizzleFlip. With
// this no two of eight neighbouring invocations access the same bank: neither when they read, nor when
// they store the vecs of a row, or the same vec of eight rows, or of four rows in either half of a step.
const uint kSwizzleFlip = 3;
uint swizzle(uint row, uint lane) {
  return row / 2 * 8 + (lane ^ (row / 2 % 2 * 2) ^ (row / 4)) * 2 + row % 2;
}

// Invocations load from pairs of rows 8 apart: chunks of weights, and vecs of x.
const uint kRowChunks = kStep / kChunkWeights;
const uint kChunkPairs = kTileOutputs / 2 * kRowChunks;
const uint kWeightLoads = 2 * DIVIDE_UP(kChunkPairs, gl_WorkGroupSize.x);
const uint kVecPairs = kTileRows / 2 * kStepVecs;
const uint kXLoads = 2 * DIVIDE_UP(kVecPairs, gl_WorkGroupSize.x);

#include "common/coopmat_tile.glsl"

// The first row of the pair that this invocation's loads i and i + 1 are of, and their index in the row,
// if a row has `count` per step.
uvec2 pair_of(uint i, uint count) {
  const uint pair = gl_LocalInvocationIndex + i / 2 * gl_WorkGroupSize.x;
  return uvec2(pair / count / 8 * 16 + pair / count % 8, pair % count);
}

// Where this invocation's loads begin, in chunks and vecs, and the addresses of its first pair.
struct Source {
  Planes planes;
  uint chunks[kWeightLoads], vecs[kXLoads];
#ifdef FORMAT_IS_FLOAT
  uint64_t weights[2], x;
#endif
};

// With kInputs, loads are at constant offsets from a pair's address, so an address takes no instruction
// and no register.
#ifdef FORMAT_IS_FLOAT
const uint kPairRows = 2 * gl_WorkGroupSize.x / kStepVecs;  // rows from an invocation's pair to its next
const uint kUneven = kVecPairs % gl_WorkGroupSize.x + kChunkPairs % gl_WorkGroupSize.x;
const bool kWhole = kInputs != 0 && kUneven == 0;
#endif

void find_source(out Source source, uint first_row, uint first_output) {
  source.planes = planes_at(EXPERT_WEIGHTS, params.outputs * (params.inputs / kBlockWeights));
  [[unroll]] for (uint i = 0; i < kWeightLoads; ++i) {
    const uvec2 at = pair_of(i, kRowChunks);
    const uint column = min(at.x + i % 2 * 8, kTileOutputs - 1);
    source.chunks[i] = weight_row(first_output, column) * (params.inputs / kChunkWeights) + at.y;
  }
  [[unroll]] for (uint i = 0; i < kXLoads; ++i) {
    const uvec2 at = pair_of(i, kStepVecs);
    const uint row = X_ROW(min(first_row + at.x + i % 2 * 8, params.rows - 1));
    source.vecs[i] = row * (params.inputs / kVecHalves) + at.y;
  }
#ifdef FORMAT_IS_FLOAT
  [[unroll]] for (uint i = 0; i < 2; ++i)
    source.weights[i] = EXPERT_WEIGHTS + uint64_t(source.chunks[i]) * 16;
  source.x = params.x + uint64_t(source.vecs[0]) * 16;
#endif
}

void fetch_weights(out RawChunk chunks[kWeightLoads], Source source, uint k) {
#ifdef FORMAT_IS_FLOAT
  if (kWhole) {
    const uint pair_rows = kGate == kGateNone ? kPairRows : kPairRows / 2;
    [[unroll]] for (uint i = 0; i < kWeightLoads; ++i)
      chunks[i] = load_16b(source.weights[i % 2] + uint64_t(k) * 2,
                          i / 2 * pair_rows * (kInputs / kChunkWeights));
    return;
  }
#endif
  [[unroll]] for (uint i = 0; i < kWeightLoads; ++i)
    chunks[i] = load_raw_chunk(source.planes, source.chunks[i] + k / kChunkWeights);
}

void fetch_x(out uvec4 xs[kXLoads], Source source, uint k) {
#ifdef FORMAT_IS_FLOAT
  if (kWhole) {
    [[unroll]] for (uint i = 0; i < kXLoads; ++i)
      xs[i] = FreshX(source.x + uint64_t(k) * 2)
                  .at[(i / 2 * kPairRows + i % 2 * 8) * (kInputs / kVecHalves)];
    return;
  }
#endif
  [[unroll]] for (uint i = 0; i < kXLoads; ++i)
    xs[i] = FreshX(params.x).at[source.vecs[i] + k / kVecHalves];
}

// Where an operand has the words of row `row` and vec `vec` of a step in shared memory; those of the
// next slice are kSubgroupSize further on.
uint words_at(uint row, uint vec) {
  return (row / 16 * kSlices + vec / 4 * 2) * kSubgroupSize +
         (swizzle(row % 8, vec % 4) ^ vec / 4 * kSwizzleFlip);
}

void stage_weights(RawChunk chunks[kWeightLoads], Source source, uint k) {
  [[unroll]] for (uint i = 0; i < kWeightLoads; i += 2) {
    const uvec2 at = pair_of(i, kRowChunks);
    uvec4 upper[kChunkVecs], lower[kChunkVecs];
    decode_chunk(chunks[i], source.chunks[i] + k / kChunkWeights, upper);
    decode_chunk(chunks[i + 1], source.chunks[i + 1] + k / kChunkWeights, lower);
    if (kChunkPairs % gl_WorkGroupSize.x == 0 || at.x < kTileOutputs) {
      [[unroll]] for (uint v = 0; v < kChunkVecs; ++v) {
        const uint place = kXVecs + words_at(at.x, at.y * kChunkVecs + v);
        tiles[place] = uvec4(upper[v].xy, lower[v].xy);
        tiles[place + kSubgroupSize] = uvec4(upper[v].zw, lower[v].zw);
      }
    }
  }
}

void stage_x(uvec4 xs[kXLoads]) {
  [[unroll]] for (uint i = 0; i < kXLoads; i += 2) {
    const uvec2 at = pair_of(i, kStepVecs);
    if (kVecPairs % gl_WorkGroupSize.x == 0 || at.x < kTileRows) {
      const uint place = words_at(at.x, at.y);
      tiles[place] = words_of_a(xs[i].xy, xs[i + 1].xy);
      tiles[place + kSubgroupSize] = words_of_a(xs[i].zw, xs[i + 1].zw);
    }
  }
}

// Where an operand has this lane's words of fragment, or pair of fragments, `index`.
uint fragment_at(uint index, uint slice) {
  const uint place = swizzle(lane_id() / 4, lane_id() % 4);
  return (index * kSlices + slice) * kSubgroupSize + (place ^ slice / 2 * kSwizzleFlip);
}

uvec4 x_words(uint slice, uint i) {
  const uint first = subgroup_id() / kSubgroupsAcross * kFragmentsDown;
  return tiles[fragment_at(first + i, slice)];
}

uvec4 weight_words(uint slice, uint pair) {
  const uint first = subgroup_id() % kSubgroupsAcross * kPairsAcross;
  return tiles[kXVecs + fragment_at(first + pair, slice)];
}

void multiply_pair(inout Fragment sums[kSums], uvec4 x[kFragmentsDown], uvec4 weights, uint pair) {
  FragmentB left, right;
  set_b(left, weights.xy);
  set_b(right, weights.zw);
  [[unroll]] for (uint i = 0; i < kFragmentsDown; ++i) {
    const uint at = i * kFragmentsAcross + 2 * pair;
    FragmentA fragment;
    set_a(fragment, x[i]);
    sums[at] = coopMatMulAdd(fragment, left, sums[at]);
    sums[at + 1] = coopMatMulAdd(fragment, right, sums[at + 1]);
  }
}

// All products of a step except those of the last slice, whose words are returned in x and weights. Each
// pair is loaded while the previous one is multiplied, together with some of the next slice's x.
void multiply_slices(inout Fragment sums[kSums], out uvec4 x[kFragmentsDown],
                     out uvec4 weights[kPairsAcross]) {
  [[unroll]] for (uint i = 0; i < kFragmentsDown; ++i) x[i] = x_words(0, i);
  weights[0] = weight_words(0, 0);
  UNROLL for (uint slice = 0; slice + 1 < kSlices; ++slice) {
    uvec4 next_x[kFragmentsDown];
    [[unroll]] for (uint pair = 0; pair < kPairsAcross; ++pair) {
      const bool more = pair + 1 < kPairsAcross;
      const uvec4 next = weight_words(more ? slice : slice + 1, more ? pair + 1 : 0);
      [[unroll]] for (uint i = pair * kFragmentsDown / kPairsAcross;
                      i < (pair + 1) * kFragmentsDown / kPairsAcross; ++i)
        next_x[i] = x_words(slice + 1, i);
      multiply_pair(sums, x, weights[0], pair);
      weights[0] = next;
    }
    [[unroll]] for (uint i = 0; i < kFragmentsDown; ++i) x[i] = next_x[i];
  }
  [[unroll]] for (uint pair = 1; pair < kPairsAcross; ++pair)
    weights[pair] = weight_words(kSlices - 1, pair);
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
#ifdef EXPERTS
  const uint first_output = work.output_tile * kTileOutputs;
#else
  const uint first_output = params.first_output + work.output_tile * kTileOutputs;
#endif
  Source source;
  find_source(source, first_row, first_output);
  const uint steps = params.inputs / kStep;
  const uint begin = steps * work.split / work.splits * kStep;
  const uint last = (steps * (work.split + 1) / work.splits - 1) * kStep;

  RawChunk chunks[kWeightLoads];
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
  stage_weights(chunks, source, begin);
  stage_x(xs);
  barrier();
  // Loads come first in the loop and stores last: the compiler copies values that are in flight where a
  // loop repeats, and so waits for them; and if registers are short, it moves loads to where they are
  // used.
  for (uint k = begin; k <= last; k += kStep) {
    // The next step's loads; after the last step they are not used.
    const uint next = min(k + kStep, last);
    fetch_weights(chunks, source, next);
    fetch_x(xs, source, next);
    uvec4 x[kFragmentsDown], weights[kPairsAcross];
    multiply_slices(sums, x, weights);
    barrier();  // every subgroup has loaded its words
    stage_weights(chunks, source, next);
    stage_x(xs);
    [[unroll]] for (uint pair = 0; pair < kPairsAcross / 2; ++pair)
      multiply_pair(sums, x, weights[pair], pair);
    barrier();
    [[unroll]] for (uint pair = kPairsAcross / 2; pair < kPairsAcross; ++pair)
      multiply_pair(sums, x, weights[pair], pair);
  }
  if (kDecodeScale != 1.0) {
    [[unroll]] for (uint i = 0; i < kSums; ++i) sums[i] *= 1.0 / kDecodeScale;
  }
  store(sums, work, first_row, first_output);
  chain_done();
}

#endif
