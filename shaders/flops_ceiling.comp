// f32 multiply-adds and nothing else: an upper bound for kernels without matrix units on a GPU.
//
// Each invocation runs kChains independent chains of vec4 multiply-adds: 8 * kChains operations per
// round.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "params/flops_ceiling.h"

void main() {
  const float seed = 1.0 + float(gl_GlobalInvocationID.x) * 1e-9;
  const vec4 factor = vec4(0.999, 0.998, 0.997, 0.996) * seed;
  vec4 chain[kChains];
  [[unroll]] for (uint c = 0; c < kChains; ++c) chain[c] = vec4(seed + float(c));
  for (uint round = 0; round < params.rounds; ++round)
    [[unroll]] for (uint c = 0; c < kChains; ++c) chain[c] = chain[c] * factor + 1e-3;
  vec4 total = vec4(0.0);
  [[unroll]] for (uint c = 0; c < kChains; ++c) total += chain[c];
  // Never true: the chains converge to small positive numbers.
  if (total.x + total.y + total.z + total.w < 0.0)
    U32(params.result).at[gl_WorkGroupID.x] = floatBitsToUint(total.x);
}
