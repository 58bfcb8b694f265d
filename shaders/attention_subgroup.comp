// Attention over the paged cache for CPU-type devices (the formula is in attention_rows.comp).
//
// A workgroup is one subgroup and meets no barrier. It takes an AttentionItem, one KV head and up
// to kRows rows, and goes over kSubgroupSize keys at a time: each lane finds the scores of a key of
// its own, so that products need no exchange between lanes; then the lanes take the values one
// after the other, each kUnits groups of four elements of the head.
//   groups = [items, kv_heads * ceil(tokens of a tile * group / kRows), 1]
// REQUIRES: full subgroups of kSubgroupSize, which divides kBlockTokens; addresses are multiples of
// 16, head_size of 16.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_ballot : require
#include "common/kernel.glsl"
#include "params/paged_kv.h"
#include "params/attention_work.h"
#include "params/attention.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kHeadSize = 128;
layout(constant_id = 2) const uint kRows = 4;

layout(constant_id = 3) const uint kForm = 0;  // floats
layout(constant_id = 4) const uint kHeads = 1;
layout(constant_id = 5) const uint kKvHeads = 1;
layout(constant_id = 6) const float kScale = 1.0;
const uint kSubgroups = 1;  // of a group

#include "common/attention_kv.glsl"
#include "common/attention_work.glsl"
#include "common/attention_score.glsl"
#include "common/attention_merge_splits.glsl"

const uint kSubgroupSize = gl_WorkGroupSize.x;
const uint kUnits = (kRowVectors + kSubgroupSize - 1) / kSubgroupSize;

void main() {
  const Place place = find_place();
  if (place.rows == 0) return;
  const uint lane = gl_SubgroupInvocationID;

  F32x4 q[kRows];
  uvec2 visible[kRows];
  vec4 sums[kRows * kUnits];
  float max_score[kRows];
  float weight_sum[kRows];  // of this lane's keys
  [[unroll]] for (uint r = 0; r < kRows; ++r) {
    q[r] = query_row(place, r);
    visible[r] = row_keys(place, r);
    max_score[r] = kNoMax;
    weight_sum[r] = 0.0;
    [[unroll]] for (uint u = 0; u < kUnits; ++u) sums[r * kUnits + u] = vec4(0);
  }

  // Keys outside the item repeat one inside it, and are masked.
  const float scale = query_scale();
  const uint last_key = place.item.key_end - 1;
  const uint first = place.item.key_begin / kSubgroupSize * kSubgroupSize;
  for (uint base = first; base <= last_key; base += kSubgroupSize) {
    const uint first_kv_row = block_rows(place, base);
    const uint key = base + lane;
    const uint kv_row = first_kv_row + clamp(key, place.item.key_begin, last_key) % kBlockTokens;
    float score[kRows];
    [[unroll]] for (uint r = 0; r < kRows; ++r) score[r] = 0.0;
    for (uint c = 0; c < kRowChunks; ++c) {
      const KvChunk chunk = load_chunk(params.keys, params.key_scales, kv_row, c);
      [[unroll]] for (uint r = 0; r < kRows; ++r) {
        float product = 0.0;
        [[unroll]] for (uint i = 0; i < kChunkVectors; ++i)
          product += dot(q[r].at[c * kChunkVectors + i], chunk_vector(chunk, i));
        score[r] += product * chunk_scale(chunk);
      }
    }

    [[unroll]] for (uint r = 0; r < kRows; ++r) {
      const bool sees = key >= visible[r].x && key < visible[r].y;
      score[r] *= scale;
      if (params.soft_cap != 0.0) score[r] = cap_score(score[r]);
      if (!sees) score[r] = kMasked;
      const float new_max = max(max_score[r], subgroupMax(score[r]));
      const float shrink = exp2(max_score[r] - new_max);
      max_score[r] = new_max;
      score[r] = exp2(score[r] - new_max);
      weight_sum[r] = weight_sum[r] * shrink + score[r];
      [[unroll]] for (uint u = 0; u < kUnits; ++u) sums[r * kUnits + u] *= shrink;
    }

    [[unroll]] for (uint k = 0; k < kSubgroupSize; ++k) {
      const uint row =
          first_kv_row + clamp(base + k, place.item.key_begin, last_key) % kBlockTokens;
      [[unroll]] for (uint u = 0; u < kUnits; ++u) {
        const vec4 value = load_vector(params.values, params.value_scales, row,
                                       min(lane + u * kSubgroupSize, kRowVectors - 1));
        [[unroll]] for (uint r = 0; r < kRows; ++r)
          sums[r * kUnits + u] += subgroupBroadcast(score[r], k) * value;
      }
    }
  }

  [[unroll]] for (uint r = 0; r < kRows; ++r) {
    const vec2 stats = vec2(max_score[r], subgroupAdd(weight_sum[r]));
    if (!has_row(place, r)) break;
    [[unroll]] for (uint u = 0; u < kUnits; ++u) {
      const uint vector = lane + u * kSubgroupSize;
      if (vector < kRowVectors) write_vector(place, r, vector, sums[r * kUnits + u], stats);
    }
  }
  merge_splits(place);
}
