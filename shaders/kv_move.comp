// Moves single positions of sequences within the KV cache: for every plane, every KV head and every pair
// (from, to) of a list, in order,
//   plane[to, head] = plane[from, head]
// This closes the gaps that rejected rows of a tree leave between accepted ones.
//
// workgroups = [kv_heads, planes, lists]. A lane copies the same bytes of every row, so a pair may read
// what an earlier pair of its list wrote, or write what it read. REQUIRES: lists have no place in common.
//
// Not for chains: attention reads the cache of earlier steps before it waits.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "params/kv_move.h"

layout(local_size_x_id = 0) in;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Planes {
  KvPlane at[];
};
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Lists {
  KvMoveList at[];
};
layout(buffer_reference, std430, buffer_reference_align = 2) nonprivate buffer U16 { uint16_t at[]; };

uint64_t row_at(KvPlane plane, uint place) {
  const uint row = (place / kBlockTokens * params.kv_heads + gl_WorkGroupID.x) * kBlockTokens +
                   place % kBlockTokens;
  return plane.rows + uint64_t(row) * plane.row_bytes;
}

void main() {
  const KvPlane plane = Planes(params.planes).at[gl_WorkGroupID.y];
  const KvMoveList list = Lists(params.lists).at[gl_WorkGroupID.z];
  U32 words = U32(params.words);
  const uint vecs = plane.row_bytes % 16 == 0 ? plane.row_bytes / 16 : 0;
  const uint halves = vecs == 0 ? plane.row_bytes / 2 : 0;  // scales: rows of a few bytes
  for (uint m = 0; m < list.count; ++m) {
    const uint64_t from = row_at(plane, words.at[list.first + 2 * m]);
    const uint64_t to = row_at(plane, words.at[list.first + 2 * m + 1]);
    for (uint i = gl_LocalInvocationID.x; i < vecs; i += gl_WorkGroupSize.x)
      U32x4(to).at[i] = U32x4(from).at[i];
    for (uint i = gl_LocalInvocationID.x; i < halves; i += gl_WorkGroupSize.x)
      U16(to).at[i] = U16(from).at[i];
  }
}
