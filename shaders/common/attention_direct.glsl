// The body of attention_direct.comp, which describes it, and of attention_direct_emulated.comp.
#ifndef HEARTH_ATTENTION_DIRECT_GLSL
#define HEARTH_ATTENTION_DIRECT_GLSL
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "common/kernel.glsl"
#include "params/paged_kv.h"
#include "params/attention_work.h"
#include "params/attention_rows.h"
#include "common/chain.glsl"
#include "common/halves.glsl"
#include "common/fragment_lanes.glsl"
#include "common/attention_kv.glsl"
#include "common/attention_work.glsl"
#include "common/attention_score.glsl"
#include "common/attention_merge_splits.glsl"
#include "common/attention_merge_subgroups.glsl"
#include "common/attention_rope.glsl"
#include "common/attention_fragments.glsl"

// Which part of a run of sixteen keys lane l loads:
// - keys l / 4 and l / 4 + 8, of each chunk l % 4 and every fourth after it. Four elements of a chunk,
//   together with those of the other lanes, form a fragment.
// - the values of keys 2 * (l % 4), the next, and the two that are 8 further on, of each chunk l / 4 and
//   every eighth after it. Two elements of a chunk form rows l / 4 and l / 4 + 8 of a fragment.
// Scores have one row per query and one column per key. Sums have one column per query: values are the
// first operand and weights the second, which halves the products and registers; the weights are in the
// lanes that need them either way.
const uint kSlices = kHeadSize / 16;  // fragments along a head
const uint kKeyChunks = kRowChunks / 4;
const uint kChunkSlices = kChunkElements / 4;
const uint kValueChunks = (kRowChunks + 7) / 8;
const uint kSums = kValueChunks * kChunkElements / 2;  // fragments of values
const uint kStep = kSubgroups * kRun;  // keys from a subgroup's run to its next

// All loads of a run are in flight together.
struct Run {
  uint first;
  KvChunk keys[2 * kKeyChunks];
  KvChunk values[4 * kValueChunks];
};

uint next_kv_row;  // the first KV row of the block that holds the next run to load

// Which of the run's sixteen keys this lane loads, and which values.
uint own_key(uint i) { return lane_id() / 4 + i * 8; }
uint own_value(uint i) { return lane_id() % 4 * 2 + i % 2 + i / 2 * 8; }

void load_key(inout Run run, uint i, uint kv_row) {
  UNROLL for (uint c = 0; c < kKeyChunks; ++c)
    run.keys[i * kKeyChunks + c] =
        load_chunk(params.keys, params.key_scales, kv_row, c * 4 + lane_id() % 4);
}

// Lanes past the end of a row load its last chunk again; their sums are dropped.
void load_value(inout Run run, uint i, uint kv_row) {
  UNROLL for (uint c = 0; c < kValueChunks; ++c)
    run.values[i * kValueChunks + c] =
        load_chunk(params.values, params.value_scales, kv_row,
                   min(c * 8 + lane_id() / 4, kRowChunks - 1));
}

void load_run(Work work, uint first, out Run run) {
  run.first = first;
  const uint kv_row = next_kv_row;
  UNROLL for (uint i = 0; i < 2; ++i)
    load_key(run, i, kv_row + inside(work, first + own_key(i)) % kTokensPerBlock);
  UNROLL for (uint i = 0; i < 4; ++i)
    load_value(run, i, kv_row + inside(work, first + own_value(i)) % kTokensPerBlock);
  next_kv_row = block_rows(work, min(first + kStep, work.item.key_end - 1));
}

uint first_run(Work work) { return work.item.key_begin / kRun * kRun; }

// The first key of the subgroup, which continues while it has keys. Emulated subgroups all continue
// while the first one has keys, because they must execute the same barriers.
uint run_base(Work work) {
#ifdef EMULATE_FRAGMENTS
  return first_run(work);
#else
  return first_run(work) + subgroup_id() * kRun;
#endif
}

void load_first_run(Work work, out Run run) {
  const uint first = first_run(work) + subgroup_id() * kRun;
  next_kv_row = block_rows(work, min(first, work.item.key_end - 1));
  load_run(work, first, run);
}

void load_token(Work work, inout Run run) {
  UNROLL for (uint i = 0; i < 2; ++i)
    if (inside(work, run.first + own_key(i)) == position) load_key(run, i, token_row);
  UNROLL for (uint i = 0; i < 4; ++i)
    if (inside(work, run.first + own_value(i)) == position) load_value(run, i, token_row);
}

// A lane has four elements of one row in every fragment along the head, or none.
struct Rows {
  uvec2 q[kSlices];
  uvec2 visible;  // keys [x, y), the same for all rows
};

void find_rows(Work work, out Rows rows) {
  rows.visible = row_keys(work, 0);
  const float scale = query_scale();
  const uint row = lane_id() / 4;
  UNROLL for (uint s = 0; s < kSlices; ++s) {
    const uint chunk = s / kChunkSlices * 4 + lane_id() % 4;
    const vec4 q = query_quad(work, min(row, kRows - 1), chunk * kChunkSlices + s % kChunkSlices);
    rows.q[s] = row < kRows ? pack_halves(q * scale, vec4(0.0)).xy : uvec2(0);
  }
}

struct Softmax {
  Fragment sums[kSums];         // of queries 2 * (l % 4) and the next
  float max_score, weight_sum;  // of query l / 4; weight_sum over the lane's keys
};

void begin_softmax(out Softmax soft) {
  [[unroll]] for (uint n = 0; n < kSums; ++n) soft.sums[n] = Fragment(0.0);
  soft.max_score = kNoMax;
  soft.weight_sum = 0.0;
}

// The scores of keys 2 * (l % 4) and the next, and of the two that are 8 further on, for row l / 4.
vec4 multiply_keys(Run run, Rows rows) {
  Fragment scores[2];
  [[unroll]] for (uint i = 0; i < 2; ++i) scores[i] = Fragment(0.0);
  UNROLL for (uint s = 0; s < kSlices; ++s) {
    FragmentA x;
    set_a(x, words_of_a(rows.q[s], uvec2(0)));
    UNROLL for (uint i = 0; i < 2; ++i) {
      const uint at = s % kChunkSlices;
      const uvec4 halves = chunk_halves(run.keys[i * kKeyChunks + s / kChunkSlices], at / 2);
      FragmentB w;
      set_b(w, at % 2 == 0 ? halves.xy : halves.zw);
      scores[i] = coopMatMulAdd(x, w, scores[i]);
    }
  }
  return vec4(scores[0][0], scores[0][1], scores[1][0], scores[1][1]);
}

// The two queries whose sums this lane holds, and `value` from the lanes that hold their scores.
uint sum_query(uint e) { return lane_id() % 4 * 2 + e; }
vec2 of_sum_queries(float value) {
  return vec2(shuffle_from(value, sum_query(0) * 4), shuffle_from(value, sum_query(1) * 4));
}

// Turns scores into weights. Rescales the sums of queries whose max grows.
vec4 weigh(vec4 scores, Rows rows, uint first, inout Softmax soft) {
  if (params.soft_cap != 0.0) scores = cap_scores(scores);
  if (first < rows.visible.x || first + kRun > rows.visible.y) {
    [[unroll]] for (uint i = 0; i < 4; ++i) {
      const uint key = first + own_value(i);
      if (key < rows.visible.x || key >= rows.visible.y) scores[i] = kMasked;
    }
  }
  const float largest =
      row_max(max(kNoMax, max(max(scores.x, scores.y), max(scores.z, scores.w))));
  const bool grows = largest > soft.max_score + kSlack;
  if (any_lane(grows)) {
    const float shrink = grows ? exp2(soft.max_score - largest) : 1.0;
    if (grows) soft.max_score = largest;
    soft.weight_sum *= shrink;
    const vec2 sum_shrink = of_sum_queries(shrink);
    [[unroll]] for (uint n = 0; n < kSums; ++n)
      [[unroll]] for (uint e = 0; e < 4; ++e) soft.sums[n][e] *= sum_shrink[e % 2];
  }
  const vec4 weights = exp2(scores - soft.max_score);
  soft.weight_sum += weights.x + weights.y + weights.z + weights.w;
  return weights;
}

void add_values(Run run, vec4 weights, inout Softmax soft) {
  FragmentB w;
  set_b(w, pack_halves(weights, vec4(0.0)).xy);
  UNROLL for (uint c = 0; c < kValueChunks * kChunkVecs; ++c) {
    uvec4 halves[4];
    [[unroll]] for (uint i = 0; i < 4; ++i)
      halves[i] = chunk_halves(run.values[i * kValueChunks + c / kChunkVecs], c % kChunkVecs);
    UNROLL for (uint d = 0; d < kVecHalves; d += 2) {
      uvec2 rows[2];
      [[unroll]] for (uint e = 0; e < 2; ++e)
        rows[e] = uvec2(pair_word(halves[0], halves[1], d + e), pair_word(halves[2], halves[3], d + e));
      FragmentA values;
      set_a(values, words_of_a(rows[0], rows[1]));
      const uint n = (c * kVecHalves + d) / 2;
      soft.sums[n] = coopMatMulAdd(values, w, soft.sums[n]);
    }
  }
}

void process_run(Run run, Rows rows, inout Softmax soft) {
  const vec4 weights = weigh(multiply_keys(run, rows), rows, run.first, soft);
  add_values(run, weights, soft);
}

// A lane has one whole chunk of every eight, for two queries.
void emit_rows(Work work, Softmax soft) {
  const vec2 max_scores = of_sum_queries(soft.max_score);
  const vec2 weight_sums = of_sum_queries(row_sum(soft.weight_sum));
  [[unroll]] for (uint e = 0; e < 2; ++e) {
    const uint row = sum_query(e);
    const vec2 stats = vec2(max_scores[e], weight_sums[e]);
    if (row >= kRows) continue;
    UNROLL for (uint c = 0; c < kValueChunks * kChunkVecs; ++c) {
      const uint chunk = c / kChunkVecs * 8 + lane_id() / 4;
      if (chunk >= kRowChunks) continue;
      [[unroll]] for (uint v = 0; v < 2; ++v) {
        const uint n = (c * kVecHalves + v * 4) / 2;
        const vec4 sum = vec4(soft.sums[n][e], soft.sums[n][e + 2], soft.sums[n + 1][e],
                              soft.sums[n + 1][e + 2]);
        emit_quad(work, subgroup_id(), row,
                     chunk * kChunkQuads + c % kChunkVecs * 2 + v, sum, stats);
      }
    }
  }
}

#include "common/attention_item.glsl"

#endif
