// Matrix times a few vectors, for GPUs: y[r, n] = sum over k of weight[n, k] * x[r, k]
//
// A subgroup computes kOutputs neighbouring outputs for all kRows rows of x; its lanes walk along k,
// eight weights each, and keep kAhead * kOutputs 16-byte loads in flight.
//   groups = [ceil(outputs / (kOutputs * subgroups in a group)), 1, 1]
// REQUIRES: inputs a multiple of 8, addresses multiples of 16, full subgroups.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "common/f16_chunk.glsl"
#include "params/matvec.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kRows = 1;     // of x, 1 to 8
layout(constant_id = 2) const uint kOutputs = 2;  // a subgroup
layout(constant_id = 3) const uint kAhead = 4;    // steps along k whose loads are issued together

void main() {
  const uint first = (gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID) * kOutputs;
  if (first >= params.outputs) return;

  const uint chunks = params.inputs / 8;  // a row of the matrix, in 16-byte chunks
  U32x4 weight = U32x4(params.weight);
  F32x4 x = F32x4(params.x);

  // Outputs past the last one repeat it: their loads stay inside the matrix, their sums are dropped.
  uint row_start[kOutputs];
  [[unroll]] for (uint o = 0; o < kOutputs; ++o)
    row_start[o] = min(first + o, params.outputs - 1) * chunks;

  float sum[kRows * kOutputs];
  [[unroll]] for (uint i = 0; i < kRows * kOutputs; ++i) sum[i] = 0.0;

  uint chunk = gl_SubgroupInvocationID;
  for (; chunk + (kAhead - 1) * gl_SubgroupSize < chunks; chunk += kAhead * gl_SubgroupSize) {
    uvec4 w[kAhead * kOutputs];
    [[unroll]] for (uint a = 0; a < kAhead; ++a)
      [[unroll]] for (uint o = 0; o < kOutputs; ++o)
        w[a * kOutputs + o] = weight.at[row_start[o] + chunk + a * gl_SubgroupSize];
    [[unroll]] for (uint a = 0; a < kAhead; ++a) {
      const uint place = (chunk + a * gl_SubgroupSize) * 2;
      [[unroll]] for (uint r = 0; r < kRows; ++r) {
        const vec4 x0 = x.at[r * chunks * 2 + place];
        const vec4 x1 = x.at[r * chunks * 2 + place + 1];
        [[unroll]] for (uint o = 0; o < kOutputs; ++o)
          sum[r * kOutputs + o] += dot_f16_chunk(w[a * kOutputs + o], x0, x1);
      }
    }
  }
  for (; chunk < chunks; chunk += gl_SubgroupSize) {
    [[unroll]] for (uint r = 0; r < kRows; ++r) {
      const vec4 x0 = x.at[(r * chunks + chunk) * 2];
      const vec4 x1 = x.at[(r * chunks + chunk) * 2 + 1];
      [[unroll]] for (uint o = 0; o < kOutputs; ++o)
        sum[r * kOutputs + o] += dot_f16_chunk(weight.at[row_start[o] + chunk], x0, x1);
    }
  }

  [[unroll]] for (uint r = 0; r < kRows; ++r) {
    [[unroll]] for (uint o = 0; o < kOutputs; ++o) {
      const float total = subgroupAdd(sum[r * kOutputs + o]);
      if (gl_SubgroupInvocationID == o % gl_SubgroupSize && first + o < params.outputs)
        F32(params.y).at[r * params.outputs + first + o] = total;
    }
  }
}
