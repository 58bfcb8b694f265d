// Attention over the paged cache for prompt chunks (the formula is in attention_rows.comp), for devices
// whose lanes hold fragments as common/fragment_lanes.glsl says. Queries, keys, values and weights enter
// the products as f16, sums are f32.
//
// A workgroup takes an AttentionItem, one KV head and kRows rows, 16 a subgroup. It goes over the keys
// in tiles of kKeys, which all subgroups share; the loads of the next tile are under way while one is
// worked on. A lane knows which rows and keys its scores are of, so that scores become weights where
// they are, and weights fragments of the next product, without leaving its registers.
//   groups = [items, kv_heads * ceil(tokens of a tile * group / kRows), 1]
// REQUIRES: full subgroups of 32; head_size a multiple of 32; kKeys a multiple of 32; addresses are
// multiples of 16.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
#include "common/attention_lanes.glsl"
