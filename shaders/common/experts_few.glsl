// What experts_few adds to matmul_team.glsl: experts' products (params/experts.h) for steps of up to eight
// rows. A position is a pair of a row and one of its experts.
//
// There are no tiles: all workgroups divide the rounds of all experts that any row uses evenly, and
// each expert's weights are read once. In the first product (kGate) the eight columns of a fragment are the
// step's rows, whichever expert they are multiplied by, so x stays in registers from expert to expert; it
// is f32, normed here if kNorm is set, and the experts may be chosen here, too. In the second, x is
// [positions, inputs] f16; the rows that do not use an expert are 0.
//   workgroups = [1, any number, 1]
// REQUIRES: at most eight rows, kColumns and kSplits 1, kInputs a multiple of 32.
#ifndef HEARTH_EXPERTS_FEW_GLSL
#define HEARTH_EXPERTS_FEW_GLSL

#include "common/route.glsl"

const bool kFirstProduct = kGate != kGateNone;
const uint kMostPositions = kColumnRows * kUsed, kPlaces = kColumnRows * kExperts;
shared uint chosen[kMostPositions];     // [row, used]: experts
shared float scales_of[kMostPositions];
shared uint places[kPlaces];            // [expert, row]: 1 + the position; 0: the row does not use it
const uint kUseWords = DIVIDE_UP(kExperts, 32);
shared uint use_bits[kUseWords];        // bit e % 32 of word e / 32: expert e is used
shared uint in_use[kExperts];           // the experts that are used, in order

// The experts of one row, found by one subgroup of the device.
void route_row(uint row) {
  uint keys[kLaneExperts];
  load_keys(params.logits, params.experts, row, keys);
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
      chosen[row * kUsed + k] = best.index;
      scales_of[row * kUsed + k] = share;
    }
    take_expert(keys, best.index);
  }
  // The same lane wrote them.
  if (gl_SubgroupInvocationID == 0)
    for (uint k = 0; k < kUsed; ++k) scales_of[row * kUsed + k] /= sum;
}

// Fills the lists, and returns how many experts are used. Ends with a barrier.
uint find_experts() {
  const uint own = gl_LocalInvocationIndex, stride = gl_WorkGroupSize.x;
  const uint positions = params.rows * kUsed;
  for (uint i = own; i < kPlaces; i += stride) places[i] = 0;
  if (own < kUseWords) use_bits[own] = 0;
  if (own < kExperts) in_use[own] = 0;  // past the last one, lavapipe needs an expert, too
  if (kRoutes != 0) {
    for (uint row = gl_SubgroupID; row < params.rows; row += gl_NumSubgroups) route_row(row);
  } else {
    for (uint p = own; p < positions; p += stride) {
      chosen[p] = FreshU32(params.tiles).at[p];
      scales_of[p] = FreshF32(params.scales).at[p];
    }
  }
  barrier();
  for (uint p = own; p < positions; p += stride) {
    places[chosen[p] * kColumnRows + p / kUsed] = p + 1;
    atomicOr(use_bits[chosen[p] / 32], 1u << chosen[p] % 32);
    if (kRoutes != 0 && gl_WorkGroupID.y == 0) {
      U32(params.tiles).at[p] = chosen[p];
      F32(params.scales).at[p] = scales_of[p];
    }
  }
  barrier();
  // An expert's place in the list is the number of those in use before it.
  uint before = 0, used = 0;
  [[unroll]] for (uint w = 0; w < kUseWords; ++w) {
    const uint bits = use_bits[w];
    used += bitCount(bits);
    if (w < own / 32) before += bitCount(bits);
    if (w != own / 32 || (bits >> own % 32 & 1) == 0) continue;
    in_use[before + bitCount(bits & ((1u << own % 32) - 1))] = own;
  }
  barrier();
  return used;
}

shared float subgroup_squares[kSubgroups * kColumnRows];
shared float norm_factors[kColumnRows];

// The rows of the step as halves, after their norm. All invocations must call it.
void load_rows(out uvec4 x[kXVecs]) {
  const uint row = min(lane_id() / 4, params.rows - 1);
  vec4 low[kXVecs], high[kXVecs];
  float squares = 0.0;
  [[unroll]] for (uint v = 0; v < kXVecs; ++v) {
    const uint vec = vec_in_row(v), at = (row * kRowVecs + min(vec, kRowVecs - 1)) * 2;
    low[v] = FreshF32x4(params.x).at[at];
    high[v] = FreshF32x4(params.x).at[at + 1];
    if (vec >= kRowVecs) low[v] = high[v] = vec4(0.0);
    if (kNorm != 0) squares += dot(low[v], low[v]) + dot(high[v], high[v]);
  }
  float factor = 1.0;
  if (kNorm != 0) {
    squares += shuffle_xor(squares, 1);
    squares += shuffle_xor(squares, 2);
    if (lane_id() % 4 == 0) subgroup_squares[subgroup_id() * kColumnRows + lane_id() / 4] = squares;
    barrier();
    if (gl_LocalInvocationIndex < kColumnRows) {
      float sum = 0.0;
      for (uint s = 0; s < kSubgroups; ++s) sum += subgroup_squares[s * kColumnRows + gl_LocalInvocationIndex];
      norm_factors[gl_LocalInvocationIndex] = inversesqrt(sum / float(kInputs) + params.epsilon);
    }
    barrier();
    factor = norm_factors[lane_id() / 4];
  }
  [[unroll]] for (uint v = 0; v < kXVecs; ++v) {
    if (kNorm != 0) {
      const uint at = min(vec_in_row(v), kRowVecs - 1) * 2;
      low[v] *= factor * F32x4(params.norm_weight).at[at];
      high[v] *= factor * F32x4(params.norm_weight).at[at + 1];
    }
    x[v] = pack_halves(nearest_half(low[v]), nearest_half(high[v]));
  }
}

// The rows between the products, of one expert's positions.
void load_positions(out uvec4 x[kXVecs], uint of_expert) {
  const uint place = places[of_expert * kColumnRows + lane_id() / 4];
  [[unroll]] for (uint v = 0; v < kXVecs; ++v) {
    const uint vec = vec_in_row(v);
    x[v] = uvec4(0);
    if (place != 0 && vec < kRowVecs) x[v] = FreshU32x4(params.x).at[(place - 1) * kRowVecs + vec];
  }
}

// Where the rows of a round's weights begin, in chunks; past the last round those of the last.
uvec2 weight_rows(uint round, uint rounds) {
  const uint n = min(round, rounds - 1) * kRoundResults + lane_id() / 4, last = result_count() - 1;
  const uvec2 outputs = kFirstProduct ? min(n, last) + uvec2(0, result_count())
                                      : uvec2(min(n, last), min(n + 8, last));
  return outputs * kRowChunks;
}

// The two results that a storing lane has: n and n + 8, or the gate n and its up.
struct Results {
  uint place, row, n;
  vec2 biases;
};

Results find_results(uint turn, uint round) {
  const uint pair = subgroup_id() % kStorers * kSubgroupSize + lane_id();
  Results results;
  results.row = pair % kColumnRows;
  results.n = round * kRoundResults + pair / kColumnRows % 8;
  results.place = 0;
  results.biases = vec2(0.0);
  if (stores(turn)) {
    results.place = places[expert * kColumnRows + results.row];
    const uint last = params.outputs - 1;
    const uint second = results.n + (kFirstProduct ? result_count() : 8);
    results.biases = vec2(expert_bias(min(results.n, last)), expert_bias(min(second, last)));
  }
  return results;
}

void store_results(uint turn, Results results) {
  const uint lane = results.n % 8 * 4 + results.row / 2, odd = results.row % 2;
  vec2 sums = vec2(0.0);
  [[unroll]] for (uint s = 0; s < kSubgroups; ++s) {
    const vec4 part = partials[partial_at(turn, s, 0, lane)];
    sums += odd == 0 ? part.xz : part.yw;
  }
  sums = sums * (1.0 / kDecodeScale) + results.biases;
  if (results.place == 0) return;
  const uint position = results.place - 1, first = position * result_count() + results.n;
  if (kFirstProduct) {
    if (results.n >= result_count()) return;
    const float value = GATED(sums.x, sums.y);
    if (kHalfResults != 0) {
      store_half(params.y, first, value);
    } else {
      F32(params.y).at[first] = value;
    }
  } else {
    const float scale = scales_of[position];
    if (results.n < result_count()) F32(params.y).at[first] = sums.x * scale;
    if (results.n + 8 < result_count()) F32(params.y).at[first + 8] = sums.y * scale;
  }
}

void main() {
  chain_wait_fresh();
  // A share of all rounds of all experts in use.
  const uint rounds = DIVIDE_UP(result_count(), kRoundResults);
  const uint all = find_experts() * rounds;
  const uint begin = all * gl_WorkGroupID.y / gl_NumWorkGroups.y;
  const uint end = all * (gl_WorkGroupID.y + 1) / gl_NumWorkGroups.y;
  uvec4 x[kXVecs];
  uint turn = 0;
  for (uint item = begin; item < end;) {
    expert = in_use[item / rounds];
    const Planes planes = planes_at(matrix_of(expert), params.outputs * (kInputs / kBlockWeights));
    const uint first = item % rounds, last = min(rounds, first + end - item);
    uvec2 rows = weight_rows(first, rounds);
    Weights weights;
    [[unroll]] for (uint u = 0; u < kLaneChunks; ++u) fetch_chunk(weights, planes, rows, u);
    // While the first weights are on their way.
    if (!kFirstProduct) {
      load_positions(x, expert);
    } else if (item == begin) {
      load_rows(x);
    }
    [[dont_unroll]] for (uint round = first; round < last; ++round) {
      const uvec2 next_rows = weight_rows(round + 1, rounds);
      const Results results = find_results(turn, round);  // biases are in flight while weights are multiplied
      Fragment sums[kSums];
      [[unroll]] for (uint i = 0; i < kSums; ++i) sums[i] = Fragment(0.0);
      [[unroll]] for (uint u = 0; u < kLaneChunks; ++u) {
        multiply_chunk(weights, x, u, rows, sums);
        fetch_chunk(weights, planes, next_rows, u);
      }
      rows = next_rows;
      stage_sums(sums, turn);
      barrier();
      if (stores(turn)) store_results(turn, results);
      ++turn;
    }
    item += last - first;
  }
  chain_done();
}

#endif
