// Adds the results of a row's experts, which carry their weights already, to the row:
//   y[r, i] += sum over k < kUsed, in order, of x[places[r, k], i]
//
// One invocation per quad:
//   workgroups = [ceil(width / 4 / local size), rows, 1]
// REQUIRES: width a multiple of 4, addresses multiples of 16.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "params/combine_experts.h"
#include "common/chain.glsl"

void combine() {
  const uint quads = params.width / 4, row = gl_WorkGroupID.y;
  const uint i = gl_GlobalInvocationID.x;
  if (i >= quads) return;
  const uint quad = row * quads + i;
  vec4 values[kUsed];
  [[unroll]] for (uint k = 0; k < kUsed; ++k) {
    const uint pair = row * kUsed + k;
    const uint place = kGrouped != 0 ? U32(params.places).at[pair] : pair;
    values[k] = F32x4(params.x + uint64_t(place) * params.width * 4).at[i];
  }
  vec4 sum = values[0];
  [[unroll]] for (uint k = 1; k < kUsed; ++k) sum += values[k];
  F32x4(params.y).at[quad] += sum;
}

void main() {
  chain_wait();
  combine();
  chain_done();
}
