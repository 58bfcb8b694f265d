// The body of matmul_team.comp, which describes it, and of matmul_team_emulated.comp. With EXPERTS it is that
// of experts_few (common/experts_few.glsl).
#ifndef HEARTH_MATMUL_TEAM_GLSL
#define HEARTH_MATMUL_TEAM_GLSL
#include "common/kernel.glsl"
#ifdef EXPERTS
#include "params/experts_few.h"
#else
#include "params/matmul_team.h"
#endif
#include "common/matmul_lanes.glsl"
#include "common/lane_exchange.glsl"

// Here weights are the fragments of 16 rows (A), and x, in columns of 8 rows, the others (B). A lane has
// weights of two outputs that are 8 apart, or of a gate and its up.
const uint kColumnRows = 8, kRows = kColumns * kColumnRows;
const uint kRoundResults = kGate == kGateNone ? 16 : 8;

// Four lanes load one step of a row of weights, each kLaneVecs vecs (as halves): lanes take turns, vec by
// vec, if weights are halves, so that neighbouring lanes read neighbouring bytes; otherwise each lane
// takes whole pieces.
const uint kLaneVecs = 4;
const uint kStep = 4 * kLaneVecs * kVecHalves;  // inputs
const bool kInterleaved = kChunkWeights == kVecHalves;
const uint kOutputChunks = kLaneVecs / kChunkVecs;  // per step and output

// A subgroup's part of k. Chunks past the end of a row are clamped to the last, so that loads stay in
// bounds; x is 0 for them.
const uint kRowSteps = DIVIDE_UP(kInputs, kStep), kRowChunks = kInputs / kChunkWeights;
const uint kRowVecs = kInputs / kVecHalves;
const uint kKSplits = kSplits * kSubgroups;
const uint kSteps = DIVIDE_UP(kRowSteps, kKSplits);
const bool kWhole = kInputs % (kStep * kKSplits) == 0;
const uint kColumnVecs = kSteps * kLaneVecs, kXVecs = kColumns * kColumnVecs;
const uint kLaneChunks = kSteps * kOutputChunks;  // per output

uint k_split() { return gl_WorkGroupID.z * kSubgroups + subgroup_id(); }
uint own_step(uint step) { return k_split() * kSteps + step; }

uint result_count() { return kGate == kGateNone ? params.outputs : params.outputs / 2; }
#ifndef EXPERTS
uint first_result(uint round) { return (gl_WorkGroupID.y * kRounds + round) * kRoundResults; }
#endif

// The lane's u-th chunk in a row of weights.
uint chunk_in_row(uint u) {
  const uint chunk = (own_step(u / kOutputChunks) * kOutputChunks + u % kOutputChunks) * 4 + lane_id() % 4;
  return kWhole ? chunk : min(chunk, kRowChunks - 1);
}

// The lane's v-th vec in a row of x; it may be past the end.
uint vec_in_row(uint v) {
  const uint lane = lane_id() % 4, i = v % kLaneVecs;
  return own_step(v / kLaneVecs) * 4 * kLaneVecs + (kInterleaved ? i * 4 + lane : lane * kLaneVecs + i);
}

#ifndef EXPERTS
void load_x(out uvec4 x[kXVecs]) {
  [[unroll]] for (uint i = 0; i < kXVecs; ++i) {
    const uint row = min(i / kColumnVecs * kColumnRows + lane_id() / 4, params.rows - 1);
    const uint v = i % kColumnVecs;
    const uint vec = vec_in_row(v);
    x[i] = FreshU32x4(params.x).at[row * kRowVecs + (kWhole ? vec : min(vec, kRowVecs - 1))];
    if (!kWhole && vec >= kRowVecs) x[i] = uvec4(0);
  }
}
#endif

// Weights of the lane's two outputs.
struct Weights {
  RawChunk upper[kLaneChunks], lower[kLaneChunks];
};

#ifndef EXPERTS
// Where their rows begin in a round, in chunks. After the last round there is nothing to load, but
// skipping the loads would create two code paths, and loads in flight are waited for where paths join.
// So all lanes load the first row again, which is in a cache.
uvec2 weight_rows(uint round) {
  const uint n = first_result(round) + lane_id() / 4, last = result_count() - 1;
  uvec2 outputs = kGate == kGateNone ? uvec2(min(n, last), min(n + 8, last))
                                     : min(n, last) + uvec2(0, result_count());
  if (round == kRounds) outputs = uvec2(0);
  return outputs * (kInputs / kChunkWeights);
}
#endif

// Float formats are loaded at constant offsets from one address, so that loads need no address
// arithmetic.
RawChunk fetch(Planes planes, uint row, uint u) {
#ifdef FORMAT_IS_FLOAT
  const uint first = chunk_in_row(0);
  return load_16b(planes.values + uint64_t(row + first) * 16, kWhole ? u * 4 : chunk_in_row(u) - first);
#else
  return load_raw_chunk(planes, row + chunk_in_row(u));
#endif
}

void fetch_chunk(inout Weights weights, Planes planes, uvec2 rows, uint u) {
  weights.upper[u] = fetch(planes, rows.x, u);
  weights.lower[u] = fetch(planes, rows.y, u);
}

// Two per column, so that a product need not wait for the previous one.
const uint kSums = 2 * kColumns;

void multiply_chunk(Weights weights, uvec4 x[kXVecs], uint u, uvec2 rows, inout Fragment sums[kSums]) {
  uvec4 upper[kChunkVecs], lower[kChunkVecs];
  const uint at = chunk_in_row(u);
  decode_chunk(weights.upper[u], rows.x + at, upper);
  decode_chunk(weights.lower[u], rows.y + at, lower);
  UNROLL for (uint v = 0; v < kChunkVecs; ++v) {
    FragmentA low, high;
    set_a(low, words_of_a(upper[v].xy, lower[v].xy));
    set_a(high, words_of_a(upper[v].zw, lower[v].zw));
    [[unroll]] for (uint c = 0; c < kColumns; ++c) {
      const uvec4 words = x[c * kColumnVecs + u * kChunkVecs + v];
      FragmentB column;
      set_b(column, words.xy);
      sums[2 * c] = coopMatMulAdd(low, column, sums[2 * c]);
      set_b(column, words.zw);
      sums[2 * c + 1] = coopMatMulAdd(high, column, sums[2 * c + 1]);
    }
  }
}

// The subgroups' sums, in fragment layout. Two rounds, because one round's sums are still read while the
// next one's are written.
shared vec4 partials[2 * kSubgroups * kColumns * kSubgroupSize];

uint partial_at(uint round, uint subgroup, uint column, uint lane) {
  return ((round % 2 * kSubgroups + subgroup) * kColumns + column) * kSubgroupSize + lane;
}

void stage_sums(Fragment sums[kSums], uint round) {
  [[unroll]] for (uint c = 0; c < kColumns; ++c) {
    const Fragment both = sums[2 * c] + sums[2 * c + 1];
    partials[partial_at(round, subgroup_id(), c, lane_id())] =
        vec4(both[0], both[1], both[2], both[3]);
  }
}

// A few subgroups, taking turns, turn a round's sums into results: each lane those of one row and two
// outputs.
const uint kStorers = 2 * kColumns;
uint column_of(uint subgroup) { return subgroup % kStorers / 2; }
bool stores(uint round) { return subgroup_id() / kStorers == round % (kSubgroups / kStorers); }

layout(buffer_reference, std430, buffer_reference_align = 2) nonprivate writeonly buffer Half {
  uint16_t at[];
};

void store_half(uint64_t to, uint place, float value) {
  Half(to).at[place] = uint16_t(packHalf2x16(nearest_half(vec4(value)).xy));
}

#ifdef EXPERTS
#include "common/experts_few.glsl"
#else
#include "common/matmul_norm.glsl"

struct Results {
  uint row, n;  // and n + 8
  vec2 residuals;
  vec2 norm;  // factors of the prescaled results, if this product starts a norm
};

Results find_results(uint round) {
  const uint pair = subgroup_id() % kStorers * kSubgroupSize + lane_id();
  Results results;
  results.row = pair / (8 * kColumnRows) * kColumnRows + pair % kColumnRows;
  results.n = first_result(round) + pair / kColumnRows % 8;
  results.residuals = results.norm = vec2(0.0);
  if (kSplits == 1 && kGate == kGateNone && stores(round))
    results.residuals = vec2(load_residual(results.row, results.n),
                             load_residual(results.row, results.n + 8));
  if (kNorm == kNormStarts && stores(round)) results.norm = prescale_factors(results.row, results.n);
  return results;
}

vec2 add_partials(uint round, Results results) {
  const uint column = results.row / kColumnRows, row = results.row % kColumnRows;
  const uint lane = (results.n - first_result(round)) * 4 + row / 2;
  vec2 sum = vec2(0.0);
  [[unroll]] for (uint s = 0; s < kSubgroups; ++s) {
    const uint place = partial_at(round, s, column, lane);
    sum += vec2(partials[place][row % 2], partials[place][row % 2 + 2]);
  }
  return sum * (1.0 / kDecodeScale);
}

void store_gated(uint row, uint n, float value) {
  if (row >= params.rows || n >= result_count()) return;
  const uint place = row * result_count() + n;
  if (kHalfResults != 0) {
    store_half(params.y, place, value);
  } else {
    F32(params.y).at[place] = value;
  }
}

// Returns the value it stored.
float store_plain(uint row, uint n, float value, float residual) {
  if (row >= params.rows || n >= params.outputs) return 0.0;
  if (kSplits == 1) return store_output(row, n, value, residual);
  F32(params.y).at[(gl_WorkGroupID.z * kRows + row) * params.partial_stride + n] = value;
  return value;
}

// If this product starts a norm, adds the results' squares to `squares`.
void store_results(uint round, Results results, inout float squares) {
  vec2 sums = add_partials(round, results);
  if (kNorm == kNormFinishes) sums *= norm_factors[results.row];
  if (kGate != kGateNone) {
    store_gated(results.row, results.n, activate(sums.x, kGate == kGateGelu) * sums.y);
  } else {
    const vec2 stored =
        vec2(store_plain(results.row, results.n, sums.x, results.residuals.x),
             store_plain(results.row, results.n + 8, sums.y, results.residuals.y));
    if (kNorm == kNormStarts) {
      store_prescaled(results.row, results.n, stored.x * results.norm.x);
      store_prescaled(results.row, results.n + 8, stored.y * results.norm.y);
      squares += dot(stored, stored);
    }
  }
}

void main() {
  const Planes planes = planes_at(EXPERT_WEIGHTS, params.outputs * (kInputs / kBlockWeights));
  uvec2 rows = weight_rows(0);
  Weights weights;
  [[unroll]] for (uint u = 0; u < kLaneChunks; ++u) fetch_chunk(weights, planes, rows, u);
  chain_wait_fresh();
  uvec4 x[kXVecs];
  load_x(x);
  if (kNorm == kNormFinishes) find_norm_factors();

  float squares = 0.0;
  [[dont_unroll]] for (uint round = 0; round < kRounds; ++round) {
    const uvec2 next_rows = weight_rows(round + 1);
    const Results results = find_results(round);  // residuals are in flight while weights are multiplied
    Fragment sums[kSums];
    [[unroll]] for (uint i = 0; i < kSums; ++i) sums[i] = Fragment(0.0);
    [[unroll]] for (uint u = 0; u < kLaneChunks; ++u) {
      multiply_chunk(weights, x, u, rows, sums);
      fetch_chunk(weights, planes, next_rows, u);
    }
    rows = next_rows;
    stage_sums(sums, round);
    barrier();
    if (stores(round)) store_results(round, results, squares);
  }
  if (kNorm == kNormStarts) store_squares(squares);
  chain_done();
}

#endif
#endif
