// Attention over the paged KV cache for single tokens (the formula is in attention_rows.comp), for
// devices whose lanes hold fragments as common/fragment_lanes.glsl describes. Keys and values go from
// the cache straight into fragments. Queries and softmax weights enter the products as f16; sums are f32.
//
// A workgroup processes one AttentionItem and one KV head; its rows are the query heads that share that
// KV head: the first kRows rows of a fragment of scores, and columns of a fragment of sums. Each
// subgroup processes its own runs of sixteen keys, with its own online softmax; the subgroups are
// merged at the end, in shared memory.
//   workgroups = [items, kv_heads, 1]
// kFuseRope works as in attention_rows.comp.
// REQUIRES: full subgroups of 32; kRows at most 8; head_size a multiple of 64; kStreamLanes 4 and
// kRun 16, which divides kTokensPerBlock; tiles of one token; addresses are multiples of 16.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
#include "common/attention_direct.glsl"
