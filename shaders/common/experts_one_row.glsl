// The body of experts_one_row.comp, which describes it.
#ifndef HEARTH_EXPERTS_ONE_ROW_GLSL
#define HEARTH_EXPERTS_ONE_ROW_GLSL
#include "common/kernel.glsl"
#include "params/experts_one_row.h"
#include "common/matmul_lanes.glsl"
#include "common/lane_exchange.glsl"
#include "common/route.glsl"

const bool kFirstProduct = kGate != kGateNone;
const uint kPairs = kFirstProduct ? 1 : (kUsed + 1) / 2;  // of experts, multiplied one after the other
const uint kRoundResults = 8;
const uint kRowRounds = kResults / kRoundResults;
const uint kAllRounds = kFirstProduct ? kUsed * kRowRounds : kRowRounds;
const uint kUnrolled = kAhead % kPairs == 0 ? kAhead : kPairs % kAhead == 0 ? kPairs : kAhead * kPairs;

// A subgroup's part of k: four lanes have four neighbouring pieces of each of kLanePieces steps.
// Pieces past the end of a row are clamped to the last; x is 0 for them.
const uint kRowPieces = kInputs / kPieceWeights, kPieceVecs = kPieceWeights / kVecHalves;
const uint kLanePieces = DIVIDE_UP((kRowPieces + 3) / 4, kSubgroups);
const uint kXVecs = kLanePieces * kPieceVecs, kAllXVecs = kPairs * kXVecs;
const uint kRowQuads = 2 * kXVecs;
const uint kMatrices = 2 * kPairs;

uint own_piece(uint u) { return (subgroup_id() * kLanePieces + u) * 4 + lane_id() % 4; }
uint piece_in_row(uint u) { return min(own_piece(u), kRowPieces - 1); }

shared uint chosen[kUsed];  // the experts, the likeliest first
shared uint64_t matrices[kUsed];
shared float scales_of[kUsed];

// Found by one subgroup of the device.
void route_row() {
  uint keys[kLaneExperts];
  load_keys(params.logits, params.experts, 0, keys);
  float largest = 0.0, sum = 0.0;
  [[dont_unroll]] for (uint k = 0; k < kUsed; ++k) {
    const LikeliestExpert best = find_likeliest(keys);
    if (k == 0) {
      largest = best.logit;
      if (kOverAll != 0) sum = sum_of_shares(keys, largest);
    }
    const float share = exp(best.logit - largest);
    if (kOverAll == 0) sum += share;
    if (gl_SubgroupInvocationID == 0) {
      chosen[k] = best.index;
      matrices[k] = matrix_of(best.index);
      scales_of[k] = share;
    }
    take_expert(keys, best.index);
  }
  if (gl_WorkGroupID.y == 0 && gl_SubgroupInvocationID == 0) {
    for (uint k = 0; k < kUsed; ++k) {
      U32(params.tiles).at[k] = chosen[k];
      F32(params.scales).at[k] = scales_of[k] / sum;
    }
  }
}

// Ends with a barrier.
void find_experts() {
  if (kFirstProduct) {
    if (gl_SubgroupID == 0) route_row();
  } else {
    for (uint k = gl_LocalInvocationIndex; k < kUsed; k += gl_WorkGroupSize.x) {
      chosen[k] = FreshU32(params.tiles).at[k];
      matrices[k] = matrix_of(chosen[k]);
      scales_of[k] = FreshF32(params.scales).at[k];
    }
  }
  barrier();
}

// The lane's part of the row, before its norm.
void load_row(out vec4 row[kRowQuads]) {
  [[unroll]] for (uint v = 0; v < kXVecs; ++v) {
    const uint vec = piece_in_row(v / kPieceVecs) * kPieceVecs + v % kPieceVecs;
    row[2 * v] = FreshF32x4(params.x).at[2 * vec];
    row[2 * v + 1] = FreshF32x4(params.x).at[2 * vec + 1];
  }
}

shared float subgroup_squares[kSubgroups];

// Turns it into halves.
void norm_row(vec4 row[kRowQuads], out uvec4 x[kAllXVecs]) {
  float factor = 1.0;
  if (kNorm != 0) {
    float squares = 0.0;
    [[unroll]] for (uint v = 0; v < kRowQuads; ++v)
      if (own_piece(v / (2 * kPieceVecs)) < kRowPieces) squares += dot(row[v], row[v]);
    squares += shuffle_xor(squares, 1);
    squares += shuffle_xor(squares, 2);
    if (lane_id() == 0) subgroup_squares[subgroup_id()] = squares;
    barrier();
    float sum = 0.0;
    [[unroll]] for (uint s = 0; s < kSubgroups; ++s) sum += subgroup_squares[s];
    factor = inversesqrt(sum / float(kInputs) + params.epsilon);
  }
  [[unroll]] for (uint v = 0; v < kXVecs; ++v) {
    const uint u = v / kPieceVecs;
    if (kNorm != 0) {
      const uint vec = piece_in_row(u) * kPieceVecs + v % kPieceVecs;
      row[2 * v] *= factor * F32x4(params.norm_weight).at[2 * vec];
      row[2 * v + 1] *= factor * F32x4(params.norm_weight).at[2 * vec + 1];
    }
    x[v] = own_piece(u) < kRowPieces ? pack_halves(nearest_half(row[2 * v]), nearest_half(row[2 * v + 1]))
                                     : uvec4(0);
  }
}

// The rows between the products: even columns are those of a pair's first expert.
void load_positions(out uvec4 x[kAllXVecs]) {
  [[unroll]] for (uint p = 0; p < kPairs; ++p) {
    const uint position = 2 * p + lane_id() / 4 % 2;
    [[unroll]] for (uint v = 0; v < kXVecs; ++v) {
      const uint u = v / kPieceVecs, i = p * kXVecs + v;
      x[i] = uvec4(0);
      if (position < kUsed && own_piece(u) < kRowPieces)
        x[i] = FreshU32x4(params.x).at[(position * kRowPieces + own_piece(u)) * kPieceVecs + v % kPieceVecs];
    }
  }
}

struct Weights {
  RawPiece upper[kLanePieces], lower[kLanePieces];
};

Planes planes_of(uint place) {
  return planes_at(matrices[place], (kFirstProduct ? 2 : 1) * kResults * kRowPieces);
}

// Where the lane's weights of a round are.
struct WeightPlaces {
  Planes upper, lower;
  uint upper_row, lower_row;  // in pieces
};

WeightPlaces places_in_round(uint round, uint pair, Planes all[kMatrices]) {
  const uint row = round % kRowRounds * kRoundResults + lane_id() / 4;
  WeightPlaces places;
  places.upper = kFirstProduct ? planes_of(round / kRowRounds) : all[2 * pair];
  places.lower = kFirstProduct ? places.upper : all[2 * pair + 1];
  places.upper_row = row * kRowPieces;
  places.lower_row = kFirstProduct ? places.upper_row + kResults * kRowPieces : places.upper_row;
  return places;
}

void fetch(inout Weights weights, WeightPlaces places, uint u) {
  weights.upper[u] = load_piece(places.upper, places.upper_row + piece_in_row(u));
  weights.lower[u] = load_piece(places.lower, places.lower_row + piece_in_row(u));
}

// Of a piece in a row of a round; of which only the lowest bit matters.
uint piece_index(uint round, uint u) {
  if (kRowPieces % 2 == 0) return piece_in_row(u);
  return (round % kRowRounds * kRoundResults + lane_id() / 4) * kRowPieces + piece_in_row(u);
}

void multiply(Weights weights, uvec4 x[kAllXVecs], uint pair, uint round, uint u,
              inout Fragment sums[2]) {
  uvec4 upper[kPieceVecs], lower[kPieceVecs];
  const uint index = piece_index(round, u);
  decode_chunk(weights.upper[u], index, upper);
  decode_chunk(weights.lower[u], index + (kFirstProduct ? kResults * kRowPieces : 0), lower);
  UNROLL for (uint v = 0; v < kPieceVecs; ++v) {
    const uvec4 words = x[pair * kXVecs + u * kPieceVecs + v];
    FragmentA low, high;
    FragmentB column;
    set_a(low, words_of_a(upper[v].xy, lower[v].xy));
    set_b(column, words.xy);
    sums[0] = coopMatMulAdd(low, column, sums[0]);
    set_a(high, words_of_a(upper[v].zw, lower[v].zw));
    set_b(column, words.zw);
    sums[1] = coopMatMulAdd(high, column, sums[1]);
  }
}

// Each subgroup's sums of all rounds: a gate and its up, or those of even and of odd experts. Rounds past
// the last all have the last place.
shared vec2 partials[(kRounds + 1) * kSubgroups * kRoundResults];

uint partial_at(uint round, uint subgroup, uint result) {
  return (round * kSubgroups + subgroup) * kRoundResults + result;
}

// The results that a lane finishes, gl_WorkGroupSize.x apart: what is added to each.
const uint kLaneResults = DIVIDE_UP(kRounds * kRoundResults, gl_WorkGroupSize.x);

vec2 addend(uint round, uint n) {
  const uint outputs = (kFirstProduct ? 2 : 1) * kResults;
  const bool biased = (kEpilogue & kEpilogueBias) != 0;
  if (kFirstProduct) {
    if (!biased) return vec2(0.0);
    const uint first = chosen[round / kRowRounds] * outputs + n;
    return vec2(F32(params.bias).at[first], F32(params.bias).at[first + kResults]);
  }
  float sum = FreshF32(params.y).at[n];
  if (biased)
    for (uint k = 0; k < kUsed; ++k) sum += scales_of[k] * F32(params.bias).at[chosen[k] * outputs + n];
  return vec2(sum, 0.0);
}

layout(buffer_reference, std430, buffer_reference_align = 2) nonprivate writeonly buffer Half {
  uint16_t at[];
};

void store(uint round, uint n, vec2 sums) {
  if (!kFirstProduct) {
    F32(params.y).at[n] = sums.x + sums.y;
    return;
  }
  const float value = GATED(sums.x, sums.y);
  const uint place = round / kRowRounds * kResults + n;
  if (kHalfResults != 0) {
    Half(params.y).at[place] = uint16_t(packHalf2x16(nearest_half(vec4(value)).xy));
  } else {
    F32(params.y).at[place] = value;
  }
}

void main() {
  chain_wait_fresh();
  const uint begin = kAllRounds * gl_WorkGroupID.y / gl_NumWorkGroups.y;
  const uint end = kAllRounds * (gl_WorkGroupID.y + 1) / gl_NumWorkGroups.y;
  uvec4 x[kAllXVecs];
  vec4 row[kRowQuads];
  if (kFirstProduct) {
    load_row(row);
  } else {
    load_positions(x);
  }
  find_experts();

  Planes all[kMatrices];
  [[unroll]] for (uint k = 0; k < kMatrices; ++k) all[k] = planes_of(min(k, kUsed - 1));
  Weights weights[kAhead];
  [[unroll]] for (uint a = 0; a < kAhead; ++a) {
    const WeightPlaces places = places_in_round(min(begin + a / kPairs, end - 1), a % kPairs, all);
    [[unroll]] for (uint u = 0; u < kLanePieces; ++u) fetch(weights[a], places, u);
  }
  vec2 addends[kLaneResults];
  [[unroll]] for (uint k = 0; k < kLaneResults; ++k) {
    const uint i = gl_LocalInvocationIndex + k * gl_WorkGroupSize.x;
    const uint round = min(begin + i / kRoundResults, end - 1);
    addends[k] = addend(round, round % kRowRounds * kRoundResults + i % kRoundResults);
  }
  if (kFirstProduct) norm_row(row, x);

  vec2 total = vec2(0.0);
  [[dont_unroll]] for (uint first = 0; begin + first < end; first += kUnrolled / kPairs) {
    [[unroll]] for (uint a = 0; a < kUnrolled; ++a) {
      const uint pair = a % kPairs, slot = a % kAhead, round = first + a / kPairs;
      const WeightPlaces next =
          places_in_round(min(begin + first + (a + kAhead) / kPairs, end - 1), (a + kAhead) % kPairs, all);
      Fragment sums[2];
      sums[0] = sums[1] = Fragment(0.0);
      [[unroll]] for (uint u = 0; u < kLanePieces; ++u) {
        multiply(weights[slot], x, pair, min(begin + round, end - 1), u, sums);
        fetch(weights[slot], next, u);
      }
      const Fragment both = sums[0] + sums[1];
      if (kFirstProduct) {
        total = vec2(both[0], both[2]);
      } else {
        const float even = scales_of[2 * pair];
        const float odd = 2 * pair + 1 < kUsed ? scales_of[min(2 * pair + 1, kUsed - 1)] : 0.0;
        total = (pair == 0 ? vec2(0.0) : total) + vec2(both[0] * even, both[3] * odd);
      }
      if (pair == kPairs - 1 && lane_id() % 4 == 0)
        partials[partial_at(min(round, kRounds), subgroup_id(), lane_id() / 4)] = total;
    }
  }
  barrier();
  [[unroll]] for (uint k = 0; k < kLaneResults; ++k) {
    const uint i = gl_LocalInvocationIndex + k * gl_WorkGroupSize.x;
    const uint round = begin + i / kRoundResults;
    if (round < end) {
      vec2 sums = vec2(0.0);
      [[unroll]] for (uint s = 0; s < kSubgroups; ++s)
        sums += partials[partial_at(i / kRoundResults, s, i % kRoundResults)];
      store(round, round % kRowRounds * kRoundResults + i % kRoundResults,
            sums * (1.0 / kDecodeScale) + addends[k]);
    }
  }
  chain_done();
}

#endif
