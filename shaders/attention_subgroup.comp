// Attention over the paged KV cache for CPU-type devices (the formula is in attention_rows.comp).
//
// A workgroup is one subgroup and executes no barrier. It processes one AttentionItem, one KV head and
// up to kRows rows, kSubgroupSize keys at a time. Each lane first computes the scores of its own key,
// so that products need no exchange between lanes; then all lanes go through the values one by one,
// each lane with kLaneQuads quads of the head.
//   workgroups = [items, kv_heads * ceil(tokens of a tile * group / kRows), 1]
// TREE_ROWS: as in attention_rows.comp.
// REQUIRES: full subgroups of kSubgroupSize, which divides kTokensPerBlock; addresses and head_size are
// multiples of 16.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_ballot : require
#include "common/kernel.glsl"
#include "params/paged_kv.h"
#include "params/attention_work.h"
#include "params/attention_subgroup.h"

const uint kSubgroups = 1;  // per workgroup
const uint kSubgroupSize = gl_WorkGroupSize.x;

#include "common/attention_kv.glsl"
#include "common/attention_work.glsl"
#include "common/attention_score.glsl"
#include "common/attention_merge_splits.glsl"

const uint kLaneQuads = DIVIDE_UP(kRowQuads, kSubgroupSize);

void main() {
  const Work work = find_work();
  if (work.rows == 0) return;
  const uint lane = gl_SubgroupInvocationID;

  F32x4 q[kRows];
  uvec2 visible[kRows];
#ifdef TREE_ROWS
  TreeKeys tree[kRows];
#endif
  vec4 sums[kRows * kLaneQuads];
  float max_score[kRows];
  float weight_sum[kRows];  // of this lane's keys
  [[unroll]] for (uint r = 0; r < kRows; ++r) {
    q[r] = query_row(work, r);
#ifdef TREE_ROWS
    visible[r] = row_keys(work, r, tree[r]);
#else
    visible[r] = row_keys(work, r);
#endif
    max_score[r] = kNoMax;
    weight_sum[r] = 0.0;
    [[unroll]] for (uint u = 0; u < kLaneQuads; ++u) sums[r * kLaneQuads + u] = vec4(0);
  }

  // Loads of keys outside the item are clamped into it, and their scores masked.
  const float scale = query_scale();
  const uint last_key = work.item.key_end - 1;
  const uint first = work.item.key_begin / kSubgroupSize * kSubgroupSize;
  for (uint base = first; base <= last_key; base += kSubgroupSize) {
    const uint first_kv_row = block_rows(work, base);
    const uint key = base + lane;
    const uint kv_row = first_kv_row + clamp(key, work.item.key_begin, last_key) % kTokensPerBlock;
    float score[kRows];
    [[unroll]] for (uint r = 0; r < kRows; ++r) score[r] = 0.0;
    for (uint c = 0; c < kRowChunks; ++c) {
      const KvChunk chunk = load_chunk(params.keys, params.key_scales, kv_row, c);
      [[unroll]] for (uint r = 0; r < kRows; ++r) {
        float product = 0.0;
        [[unroll]] for (uint i = 0; i < kChunkQuads; ++i)
          product += dot(q[r].at[c * kChunkQuads + i], chunk_quad(chunk, i));
        score[r] += product * chunk_scale(chunk);
      }
    }

    [[unroll]] for (uint r = 0; r < kRows; ++r) {
      bool sees = key >= visible[r].x && key < visible[r].y;
#ifdef TREE_ROWS
      sees = sees || sees_tree_key(tree[r], key);
#endif
      score[r] *= scale;
      if (params.soft_cap != 0.0) score[r] = cap_score(score[r]);
      if (!sees) score[r] = kMasked;
      const float new_max = max(max_score[r], subgroupMax(score[r]));
      const float shrink = exp2(max_score[r] - new_max);
      max_score[r] = new_max;
      score[r] = exp2(score[r] - new_max);
      weight_sum[r] = weight_sum[r] * shrink + score[r];
      [[unroll]] for (uint u = 0; u < kLaneQuads; ++u) sums[r * kLaneQuads + u] *= shrink;
    }

    [[unroll]] for (uint k = 0; k < kSubgroupSize; ++k) {
      const uint row =
          first_kv_row + clamp(base + k, work.item.key_begin, last_key) % kTokensPerBlock;
      [[unroll]] for (uint u = 0; u < kLaneQuads; ++u) {
        const vec4 value = load_kv_quad(params.values, params.value_scales, row,
                                       min(lane + u * kSubgroupSize, kRowQuads - 1));
        [[unroll]] for (uint r = 0; r < kRows; ++r)
          sums[r * kLaneQuads + u] += subgroupBroadcast(score[r], k) * value;
      }
    }
  }

  [[unroll]] for (uint r = 0; r < kRows; ++r) {
    const vec2 stats = vec2(max_score[r], subgroupAdd(weight_sum[r]));
    if (!has_row(work, r)) break;
    [[unroll]] for (uint u = 0; u < kLaneQuads; ++u) {
      const uint quad = lane + u * kSubgroupSize;
      if (quad < kRowQuads) write_quad(work, r, quad, sums[r * kLaneQuads + u], stats);
    }
  }
  merge_splits(work);
}
