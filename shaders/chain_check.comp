// One link of the chain that runtime/chain_check.h runs to find out whether chains work on a device:
//   to[i] = from[(i + distance) % n] + 1
// Every workgroup reads what others have written in the link before it.
//   workgroups = [any, 1, 1]
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "params/chain_check.h"
#include "common/chain.glsl"

layout(local_size_x = kChainCheckGroup) in;

void main() {
  const uint count = gl_NumWorkGroups.x * kChainCheckGroup;
  const uint at = (gl_GlobalInvocationID.x + params.distance) % count;
  float before;
  if (params.fresh != 0) {
    chain_wait_fresh();
    before = FreshF32(params.from).at[at];
  } else {
    chain_wait();
    before = F32(params.from).at[at];
  }
  F32(params.to).at[gl_GlobalInvocationID.x] = before + 1.0;
  chain_done();
}
