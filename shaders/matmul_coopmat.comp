// Matrix times many vectors on VK_KHR_cooperative_matrix: f16 operands, f32 sums. The formula is in
// params/matmul.h; x is f16, as half_rows makes it.
//
// A group computes a tile of kTileRows x kTileOutputs sums, kSubgroupRows x kSubgroupOutputs a
// subgroup, walking along k in steps of kTileInputs. The operands of kAhead steps are on their way
// from memory to registers while those of one step are multiplied out of shared memory. With
// kSplits > 1 the groups of one tile share k between them and leave their sums in scratch memory,
// [split, row, output] with rows rounded up to whole tiles and outputs to whole fragments, for
// matmul_reduce to add.
// With kShare > 1 the tiles from params.whole_tiles on, which alone would leave most of the device
// idle, are shared in that way by kShare groups each: the one that is done last adds up what all of
// them left, in the order of k, and makes results of it.
// With kRound > 0 the fragments of a whole step are in registers before its last products, so that
// the next step goes to shared memory while they are multiplied, and kRound steps are written out
// one after the other: at the end of a loop's body the compiler copies, and so waits for, what is
// on its way. Of x only one step's are ahead then. Which tiles gain by it is in tile_table.cpp.
// With kGate half of the outputs are gates of the others, and y has half as many (params/matmul.h).
//   groups = [ceil(rows / kTileRows), ceil(outputs / kTileOutputs), kSplits]; with kShare > 1
//            [whole tiles + kShare * shared tiles, 1, 1]
// Rows fastest, so that groups that run together read the same weights.
// REQUIRES: inputs a multiple of the format's block and of 8, addresses multiples of 16, full
// subgroups; kTileInputs a multiple of 32 and of kFragmentInputs. With kRound, which must be a
// multiple of kAhead: kTileInputs a multiple of 2 * kFragmentInputs, and k whole rounds of kRound
// steps. kSplits or kShare is 1, and neither more than there are steps, or rounds.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "common/kernel.glsl"
#define LOAD_HALVES_SINGLY  // see quant/piece.h
#include "quant/glsl.h"
#include "weight_format.h"
#include "common/activation.glsl"
#include "common/halves.glsl"
#include "common/weight_chunk_f16.glsl"
#include "params/matmul.h"
#include "common/chain.glsl"
#include "common/matmul_output.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint kTileRows = 64;
layout(constant_id = 3) const uint kTileOutputs = 64;
layout(constant_id = 4) const uint kTileInputs = 32;
layout(constant_id = 5) const uint kSplits = 1;
layout(constant_id = 6) const uint kSubgroupRows = 32;
layout(constant_id = 7) const uint kSubgroupOutputs = 32;
layout(constant_id = 8) const uint kFragmentRows = 16;  // M of a fragment
layout(constant_id = 9) const uint kFragmentOutputs = 16;
layout(constant_id = 10) const uint kFragmentInputs = 16;
layout(constant_id = 11) const uint kSubgroups = 4;  // in a group
layout(constant_id = 12) const uint kAhead = 1;
layout(constant_id = 13) const uint kUnroll = 1;  // fragments along k whose loads may overlap
layout(constant_id = 14) const uint kGate = kGateNone;  // REQUIRES otherwise: kSplits == 1, an
                                                        // even number of fragments across
layout(constant_id = 15) const uint kHalfResults = 0;   // 1: y is f16; only with gates
layout(constant_id = 16) const uint kRound = 0;
layout(constant_id = 17) const uint kShare = 1;

// Shared memory is counted in 16 bytes. Rows have one more than they need, so that rows below each
// other lie in different banks.
const uint kRowVecs = kTileInputs / kVecHalves;
const uint kStride = kRowVecs + 1;
const uint kXVecs = kTileRows * kStride;
const uint kOperandVecs = kXVecs + kTileOutputs * kStride;
const uint kFragmentVecs = kFragmentRows * kFragmentOutputs / 4;  // of sums
const uint kSubgroupsAcross = kTileOutputs / kSubgroupOutputs;
const uint kFragmentsDown = kSubgroupRows / kFragmentRows;
const uint kFragmentsAcross = kSubgroupOutputs / kFragmentOutputs;
const uint kSlotFragments = 1;
#include "common/coopmat_staging.glsl"
// Operands: x [kTileRows, kTileInputs], then weights [kTileOutputs, kTileInputs]. In the end slots, for
// results on their way out, or a row of fragments of sums a subgroup where gates and ups meet.
const uint kMetFragments = kFragmentsAcross % 2 == 0 ? 1 : kFragmentsAcross;  // of a subgroup
const uint kOutFragments = kGate == kGateNone ? 1 : kMetFragments;
const uint kSumVecs = kSubgroups * kOutFragments * kSlotVecs;
shared uvec4 tiles[kOperandVecs > kSumVecs ? kOperandVecs : kSumVecs];

const uint kSubgroupSize = gl_WorkGroupSize.x / kSubgroups;  // of a subgroup
const uint kSums = kFragmentsDown * kFragmentsAcross;
const uint kSlices = kTileInputs / kFragmentInputs;
#define Fragment \
  coopmat<float, gl_ScopeSubgroup, kFragmentRows, kFragmentOutputs, gl_MatrixUseAccumulator>
#define FragmentX \
  coopmat<float16_t, gl_ScopeSubgroup, kFragmentRows, kFragmentInputs, gl_MatrixUseA>
// Weights are [outputs, k]: as a K x N matrix their columns lie one after the other.
#define FragmentW \
  coopmat<float16_t, gl_ScopeSubgroup, kFragmentInputs, kFragmentOutputs, gl_MatrixUseB>

// How the lanes share a step's loads out: each takes the same number of units of weights and of vecs
// of x, neighbouring lanes neighbouring ones.
const uint kRowUnits = kTileInputs / kUnitWeights;
const uint kUnits = kTileOutputs * kRowUnits;
const uint kUnitLoads = (kUnits + gl_WorkGroupSize.x - 1) / gl_WorkGroupSize.x;
const uint kVecs = kTileRows * kRowVecs;
const uint kVecLoads = (kVecs + gl_WorkGroupSize.x - 1) / gl_WorkGroupSize.x;
const uint kUnitSlots = kAhead * kUnitLoads;
const uint kVecsAhead = kRound != 0 ? 1 : kAhead;  // x comes from a cache, not from memory
const uint kVecSlots = kVecsAhead * kVecLoads;

bool is_below(uint index, uint count) {
  return count % gl_WorkGroupSize.x == 0 || index < count;
}

#include "common/coopmat_tile.glsl"

// What the loads of this group need to know.
struct Source {
  Planes planes;
  uint first_row, first_output;
  // With kRound: where each load of this lane begins, in units and vecs.
  uint units[kUnitLoads], vecs[kVecLoads];
};

uint unit_index(Source source, uint load, uint k) {
  if (kRound != 0) return source.units[load] + k / kUnitWeights;
  const uint index = gl_LocalInvocationIndex + load * gl_WorkGroupSize.x;
  const uint units = params.inputs / kUnitWeights;
  const uint n = weight_row(source.first_output, index / kRowUnits);
  return n * units + min(k / kUnitWeights + index % kRowUnits, units - 1);
}

void find_starts(inout Source source) {
  [[unroll]] for (uint i = 0; i < kUnitLoads; ++i) {
    const uint index = gl_LocalInvocationIndex + i * gl_WorkGroupSize.x;
    const uint n = weight_row(source.first_output, min(index / kRowUnits, kTileOutputs - 1));
    source.units[i] = n * (params.inputs / kUnitWeights) + index % kRowUnits;
  }
  [[unroll]] for (uint i = 0; i < kVecLoads; ++i) {
    const uint index = gl_LocalInvocationIndex + i * gl_WorkGroupSize.x;
    const uint row = min(source.first_row + index / kRowVecs, params.rows - 1);
    source.vecs[i] = row * (params.inputs / kVecHalves) + index % kRowVecs;
  }
}

// Measured on an H200: loads that the compiler knows not to meet stores of this kernel are the
// faster ones between the decoding of weights and in rounds, plain ones elsewhere.
uvec4 load_x(uint index) {
  if (kRound != 0) return FreshX(params.x).at[index];
#ifdef FORMAT_IS_FLOAT
  return FreshU32x4(params.x).at[index];
#else
  return FreshX(params.x).at[index];
#endif
}

// Loads past the end of anything repeat its last element; where k ends, keep() puts zeros for x.
void fetch_weights(inout Unit units[kUnitSlots], uint slot, Source source, uint k) {
  [[unroll]] for (uint i = 0; i < kUnitLoads; ++i)
    units[slot * kUnitLoads + i] = load_unit(source.planes, unit_index(source, i, k));
}

void fetch_x(inout uvec4 xs[kVecSlots], uint slot, Source source, uint k) {
  const uint vecs = params.inputs / kVecHalves;
  [[unroll]] for (uint i = 0; i < kVecLoads; ++i) {
    if (kRound != 0) {
      xs[slot * kVecLoads + i] = load_x(source.vecs[i] + k / kVecHalves);
      continue;
    }
    const uint index = gl_LocalInvocationIndex + i * gl_WorkGroupSize.x;
    const uint row = min(source.first_row + index / kRowVecs, params.rows - 1);
    xs[slot * kVecLoads + i] = load_x(row * vecs + min(k / kVecHalves + index % kRowVecs, vecs - 1));
  }
}

void stage_weights(Unit units[kUnitSlots], uint slot, Source source, uint k) {
  [[unroll]] for (uint i = 0; i < kUnitLoads; ++i) {
    const uint index = gl_LocalInvocationIndex + i * gl_WorkGroupSize.x;
    if (is_below(index, kUnits)) {
      uvec4 halves[kUnitVecs];
      decode_unit(units[slot * kUnitLoads + i], unit_index(source, i, k), halves);
      const uint place = kXVecs + index / kRowUnits * kStride + index % kRowUnits * kUnitVecs;
      [[unroll]] for (uint v = 0; v < kUnitVecs; ++v) tiles[place + v] = halves[v];
    }
  }
}

void stage_x(uvec4 xs[kVecSlots], uint slot, uint k) {
  [[unroll]] for (uint i = 0; i < kVecLoads; ++i) {
    const uint index = gl_LocalInvocationIndex + i * gl_WorkGroupSize.x;
    const bool inside = kRound != 0 || k + index % kRowVecs * kVecHalves < params.inputs;
    if (is_below(index, kVecs))
      tiles[index / kRowVecs * kStride + index % kRowVecs] =
          inside ? xs[slot * kVecLoads + i] : uvec4(0);
  }
}

void multiply(inout Fragment sums[kSums]) {
  const uint row = gl_SubgroupID / kSubgroupsAcross * kSubgroupRows;
  const uint column = gl_SubgroupID % kSubgroupsAcross * kSubgroupOutputs;
  const uint x_start = row * kStride;
  const uint w_start = kXVecs + column * kStride;
  for (uint block = 0; block < kTileInputs; block += kUnroll * kFragmentInputs) {
    [[unroll]] for (uint u = 0; u < kUnroll; ++u) {
      const uint k = (block + u * kFragmentInputs) / kVecHalves;
      FragmentX x[kFragmentsDown];
      [[unroll]] for (uint i = 0; i < kFragmentsDown; ++i)
        coopMatLoad(x[i], tiles, x_start + i * kFragmentRows * kStride + k, kStride,
                    gl_CooperativeMatrixLayoutRowMajor);
      [[unroll]] for (uint j = 0; j < kFragmentsAcross; ++j) {
        FragmentW w;
        coopMatLoad(w, tiles, w_start + j * kFragmentOutputs * kStride + k, kStride,
                    gl_CooperativeMatrixLayoutColumnMajor);
        [[unroll]] for (uint i = 0; i < kFragmentsDown; ++i)
          sums[i * kFragmentsAcross + j] = coopMatMulAdd(x[i], w, sums[i * kFragmentsAcross + j]);
      }
    }
  }
}

void load_slice(out FragmentX x[kFragmentsDown], out FragmentW w[kFragmentsAcross], uint slice) {
  const uint row = gl_SubgroupID / kSubgroupsAcross * kSubgroupRows;
  const uint column = gl_SubgroupID % kSubgroupsAcross * kSubgroupOutputs;
  const uint k = slice * kFragmentInputs / kVecHalves;
  [[unroll]] for (uint i = 0; i < kFragmentsDown; ++i)
    coopMatLoad(x[i], tiles, (row + i * kFragmentRows) * kStride + k, kStride,
                gl_CooperativeMatrixLayoutRowMajor);
  [[unroll]] for (uint j = 0; j < kFragmentsAcross; ++j)
    coopMatLoad(w[j], tiles, kXVecs + (column + j * kFragmentOutputs) * kStride + k, kStride,
                gl_CooperativeMatrixLayoutColumnMajor);
}

void multiply_slice(inout Fragment sums[kSums], FragmentX x[kFragmentsDown],
                    FragmentW w[kFragmentsAcross]) {
  [[unroll]] for (uint j = 0; j < kFragmentsAcross; ++j)
    [[unroll]] for (uint i = 0; i < kFragmentsDown; ++i)
      sums[i * kFragmentsAcross + j] =
          coopMatMulAdd(x[i], w[j], sums[i * kFragmentsAcross + j]);
}

// The first step's operands are on their way.
void multiply_rounds(inout Fragment sums[kSums], inout Unit units[kUnitSlots],
                     inout uvec4 xs[kVecSlots], Source source, uint begin, uint steps) {
  const uint last = begin + (steps - 1) * kTileInputs;
  FragmentX even_x[kFragmentsDown], odd_x[kFragmentsDown];
  FragmentW even_w[kFragmentsAcross], odd_w[kFragmentsAcross];
  stage_weights(units, 0, source, begin);
  stage_x(xs, 0, begin);
  fetch_weights(units, 0, source, min(begin + kAhead * kTileInputs, last));
  fetch_x(xs, 0, source, min(begin + kTileInputs, last));
  barrier();
  load_slice(even_x, even_w, 0);
  for (uint first = 0; first < steps; first += kRound) {
    [[unroll]] for (uint r = 0; r < kRound; ++r) {
      const uint k = begin + (first + r) * kTileInputs;
      [[unroll]] for (uint slice = 1; slice < kSlices; ++slice) {
        if (slice % 2 == 1) {
          load_slice(odd_x, odd_w, slice);
          multiply_slice(sums, even_x, even_w);
        } else {
          load_slice(even_x, even_w, slice);
          multiply_slice(sums, odd_x, odd_w);
        }
      }
      barrier();  // every subgroup has its fragments
      const uint slot = (r + 1) % kAhead;
      stage_weights(units, slot, source, k + kTileInputs);
      stage_x(xs, 0, k + kTileInputs);
      fetch_weights(units, slot, source, min(k + (kAhead + 1) * kTileInputs, last));
      fetch_x(xs, 0, source, min(k + 2 * kTileInputs, last));
      barrier();
      // After the last step this loads what nobody multiplies.
      load_slice(even_x, even_w, 0);
      multiply_slice(sums, odd_x, odd_w);
    }
  }
}

#include "common/coopmat_store.glsl"

void main() {
  const Place place = find_place();
  Source source;
  source.planes = planes_at(params.weight, params.outputs * (params.inputs / kBlockWeights));
  source.first_row = place.row_tile * kTileRows;
  source.first_output = place.output_tile * kTileOutputs;
  if (kRound != 0) find_starts(source);

  // This group's part of k, in whole steps, or rounds of them.
  const uint unit = max(kRound, 1) * kTileInputs;
  const uint units_of_k = (params.inputs + unit - 1) / unit;
  const uint begin = units_of_k * place.split / place.splits * unit;
  const uint end = min(units_of_k * (place.split + 1) / place.splits * unit, params.inputs);
  const uint steps = (end - begin + kTileInputs - 1) / kTileInputs;
  const uint last = begin + (steps - 1) * kTileInputs;

  Unit units[kUnitSlots];
  uvec4 xs[kVecSlots];
  Fragment sums[kSums];
  [[unroll]] for (uint i = 0; i < kSums; ++i) sums[i] = Fragment(0.0);

  // Weights are on their way before this kernel waits for x.
  [[unroll]] for (uint a = 0; a < kAhead; ++a)
    fetch_weights(units, a, source, min(begin + a * kTileInputs, last));
  chain_wait_fresh();
  [[unroll]] for (uint a = 0; a < kVecsAhead; ++a)
    fetch_x(xs, a, source, min(begin + a * kTileInputs, last));
  if (kRound != 0) multiply_rounds(sums, units, xs, source, begin, steps);
  for (uint first = 0; kRound == 0 && first < steps; first += kAhead) {
    [[unroll]] for (uint a = 0; a < kAhead; ++a) {
      const uint step = first + a;
      if (step >= steps) break;
      const uint k = begin + step * kTileInputs;
      barrier();  // the last step's operands may still be read
      stage_weights(units, a, source, k);
      stage_x(xs, a, k);
      // Only now, not before the barrier: measured, loads before it hold it up.
      barrier();
      const uint next = min(k + kAhead * kTileInputs, last);
      fetch_weights(units, a, source, next);
      fetch_x(xs, a, source, next);
      multiply(sums);
    }
  }
  if (kUnitScale != 1.0) {
    [[unroll]] for (uint i = 0; i < kSums; ++i) sums[i] *= 1.0 / kUnitScale;
  }
  store(sums, place, source.first_row, source.first_output);
  chain_done();
}
