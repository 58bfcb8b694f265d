// Attention over the paged cache for single tokens (the formula is in attention_rows.comp), for devices
// whose lanes hold fragments as common/fragment_lanes.glsl says. Keys and values go from the cache
// straight into fragments. Queries and weights enter the products as f16, sums are f32.
//
// A workgroup takes an AttentionItem and one KV head; its rows are the heads that share it: the first
// kRows rows of a fragment of scores, and columns of one of sums. A subgroup takes sixteen keys at a
// time, which no other has, with a softmax of its own; subgroups are joined at the end, in shared memory.
//   groups = [items, kv_heads, 1]
// With kFuseRope as attention_rows.comp.
// REQUIRES: full subgroups of 32; kRows at most 8; head_size a multiple of 64; kLanes 4 and kRun 16,
// which divides kBlockTokens; tiles of one token; addresses are multiples of 16.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
#include "common/attention_direct.glsl"
