// The noise that random bits stand for, for tests: noise[i] = noise_of(bits[i]), most[i] = most_noise(bits[i])
//
//   workgroups = [any number, 1, 1]
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "params/noise.h"
#include "common/sampling_noise.glsl"

void main() {
  for (uint i = gl_GlobalInvocationID.x; i < params.count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x) {
    const uint bits = U32(params.bits).at[i];
    F32(params.noise).at[i] = noise_of(bits);
    F32(params.most).at[i] = most_noise(bits);
  }
}
