// Reads memory and does nothing else: an upper bound for the bytes per second of any kernel.
//
// GPUs: neighbouring invocations read neighbouring vecs, each with kAhead 16-byte loads in flight.
// CPU-type devices (kContiguous): each invocation reads a contiguous range of its own.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "params/read_ceiling.h"

void main() {
  U32x4 data = U32x4(params.data);
  const uint invocations = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  const uint per_invocation = params.chunks / invocations;
  const uint stride = kContiguous != 0 ? 1 : invocations;
  const uint first = kContiguous != 0 ? gl_GlobalInvocationID.x * per_invocation : gl_GlobalInvocationID.x;

  uvec4 mixed = uvec4(0);
  for (uint i = 0; i < per_invocation; i += kAhead) {
    uvec4 loaded[kAhead];
    [[unroll]] for (uint a = 0; a < kAhead; ++a) loaded[a] = data.at[first + (i + a) * stride];
    [[unroll]] for (uint a = 0; a < kAhead; ++a) mixed ^= loaded[a];
  }
  // Never true for the data that the benchmark writes, but the compiler cannot know.
  if ((mixed.x & mixed.y & mixed.z & mixed.w) == 0xffffffff)
    U32(params.result).at[gl_WorkGroupID.x] = mixed.x;
}
