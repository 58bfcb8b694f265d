// Attention over the paged KV cache, a few query rows at a time: decoding on GPUs, and prompt chunks
// on GPUs where attention_tile cannot run.
//
//   result[t, h] = sum over keys j visible to t of softmax(score[t, h, j]) * value[j, h / group]
//   score[t, h, j] = scale * q[t, h] . key[j, h / group], soft-capped if params.soft_cap is not 0
//
// where group = heads / kv_heads. A workgroup processes one AttentionItem and one KV head. Its rows are
// tokens x the query heads that share the KV head, so a key is read once for all of them. A stream is
// kStreamLanes neighbouring lanes; each lane holds kLaneChunks chunks of the head. A stream processes
// runs of kRun keys that no other stream has, with its own online softmax. Streams are merged at the
// end: in registers within a subgroup, in shared memory across subgroups. A workgroup of one subgroup
// executes no barrier.
//   workgroups = [items, kv_heads * ceil(tokens of a tile * group / kRows), 1]
// TREE_ROWS: rows may be in trees of proposed tokens (common/tree_rows.glsl); a key is visible to such a
// row if it is before the tree or on the row's path. Not with kFuseRope.
// With kFuseRope, q is as the projection left it, and k and v follow it in memory: the kernel also does
// rope_kv.comp's work for its rows, and the workgroup that sees the last key writes key and value to
// the cache.
// REQUIRES: full subgroups of kSubgroupSize, a multiple of kStreamLanes; kRun divides kTokensPerBlock;
// addresses and head_size are multiples of 16. With kFuseRope also rope_kv.comp's requirements, tiles
// of one token, and one workgroup for all heads that share a KV head.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "common/kernel.glsl"
#include "params/paged_kv.h"
#include "params/attention_work.h"
#include "params/attention_rows.h"
#include "common/chain.glsl"

#include "common/attention_kv.glsl"
#include "common/attention_work.glsl"
#include "common/attention_score.glsl"
#include "common/attention_merge_splits.glsl"
#include "common/attention_rope.glsl"
#include "common/attention_run.glsl"
#include "common/attention_softmax.glsl"
#include "common/attention_merge_subgroups.glsl"

void find_rows(Work work, out Rows rows) {
  const float scale = query_scale();
  [[unroll]] for (uint r = 0; r < kRows; ++r) {
#ifdef TREE_ROWS
    rows.visible[r] = row_keys(work, r, rows.tree[r]);
#else
    rows.visible[r] = row_keys(work, r);
#endif
    [[unroll]] for (uint c = 0; c < kLaneChunks; ++c) {
      const uint chunk = lane_chunk(c);
      [[unroll]] for (uint i = 0; i < kChunkQuads; ++i) {
        rows.q[r * kLaneChunkQuads + c * kChunkQuads + i] =
            chunk < kRowChunks ? query_quad(work, r, chunk * kChunkQuads + i) * scale
                               : vec4(0);
      }
    }
  }
}

void emit_rows(Work work, inout Softmax soft) {
  merge_streams(soft);
  if (gl_SubgroupInvocationID >= kStreamLanes) return;
  [[unroll]] for (uint r = 0; r < kRows; ++r) {
    [[unroll]] for (uint c = 0; c < kLaneChunks; ++c) {
      const uint chunk = lane_chunk(c);
      if (chunk >= kRowChunks) break;
      [[unroll]] for (uint i = 0; i < kChunkQuads; ++i)
        emit_quad(work, gl_SubgroupID, r, chunk * kChunkQuads + i,
                     soft.sums[r * kLaneChunkQuads + c * kChunkQuads + i],
                     vec2(soft.max_score[r], soft.weight_sum[r]));
    }
  }
}

#include "common/attention_item.glsl"
