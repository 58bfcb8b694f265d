// Copies blocks of the KV cache: for every plane p and every pair (from, to) of the list,
//   planes[p].to[block to] = planes[p].from[block from]
// Within the pool this is a fork; to host memory it is a swap out, and from there a swap in. Pairs
// whose `from` is kNoBlock are skipped.
//
// An invocation copies kAhead vecs of 16 bytes, all loads before the first store:
//   workgroups = [ceil(largest block / (16 * kAhead * local size)), pairs, planes]
// REQUIRES: addresses and block sizes are multiples of 16; the target block of a pair appears in no
// other pair.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "params/block_copy.h"

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Planes {
  CopyPlane at[];
};
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Pairs {
  CopyPair at[];
};

void main() {
  const CopyPair pair = Pairs(params.pairs).at[gl_WorkGroupID.y];
  if (pair.from == kNoBlock) return;
  const CopyPlane plane = Planes(params.planes).at[gl_WorkGroupID.z];
  const uint vecs = plane.block_bytes / 16;
  U32x4 from = U32x4(plane.from + uint64_t(pair.from) * plane.block_bytes);
  U32x4 to = U32x4(plane.to + uint64_t(pair.to) * plane.block_bytes);

  const uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * kAhead + gl_LocalInvocationID.x;
  uvec4 vec[kAhead];
  [[unroll]] for (uint a = 0; a < kAhead; ++a) {
    const uint i = first + a * gl_WorkGroupSize.x;
    if (i < vecs) vec[a] = from.at[i];
  }
  [[unroll]] for (uint a = 0; a < kAhead; ++a) {
    const uint i = first + a * gl_WorkGroupSize.x;
    if (i < vecs) to.at[i] = vec[a];
  }
}
