// Attention over the paged KV cache for prompt chunks (the formula is in attention_rows.comp), for
// devices whose lanes hold fragments as common/fragment_lanes.glsl describes. Queries, keys, values and
// softmax weights enter the products as f16; sums are f32.
//
// A workgroup processes one AttentionItem, one KV head and kRows rows, 16 per subgroup. It goes over
// the keys in tiles of kKeys, shared by all subgroups; the next tile's loads are in flight while one
// tile is multiplied. A lane knows which rows and keys its scores belong to, so it turns scores into
// weights, and weights into fragments of the next product, without leaving its registers.
//   workgroups = [items, kv_heads * ceil(tokens of a tile * group / kRows), 1]
// REQUIRES: full subgroups of 32; head_size a multiple of 32; kKeys a multiple of 32; addresses are
// multiples of 16.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
#include "common/attention_lanes.glsl"
