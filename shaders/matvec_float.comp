// Matrix times a few vectors, for GPUs, in float arithmetic. The formula is in params/matmul.h.
//
// A subgroup computes kOutputs neighbouring outputs for kRows rows of x; its lanes walk along k,
// a chunk of weights each, and keep kAhead * kOutputs chunks in flight.
//   groups = [ceil(outputs / (kOutputs * subgroups in a group)), ceil(rows / kRows), 1]
// REQUIRES: inputs a multiple of the chunk, addresses multiples of 16, full subgroups.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "quant/glsl.h"
#include "weight_format.h"
#include "common/weight_chunk.glsl"
#include "params/matmul.h"
#include "common/matmul_output.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint kRows = 1;     // of x that a subgroup takes, 1 to 8
layout(constant_id = 3) const uint kOutputs = 2;  // a subgroup
layout(constant_id = 4) const uint kAhead = 4;    // steps along k whose loads are issued together

void main() {
  const uint first = (gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID) * kOutputs;
  if (first >= params.outputs) return;
  const uint first_row = gl_WorkGroupID.y * kRows;

  const uint chunks = params.inputs / kChunkWeights;  // in a row
  const Planes planes = planes_at(params.weight, params.outputs * (params.inputs / kBlockWeights));
  F32x4 x = F32x4(params.x);

  // Outputs and rows past the last one repeat it: loads stay inside, the sums are dropped.
  uint w_start[kOutputs];
  [[unroll]] for (uint o = 0; o < kOutputs; ++o)
    w_start[o] = min(first + o, params.outputs - 1) * chunks;
  uint x_start[kRows];
  [[unroll]] for (uint r = 0; r < kRows; ++r)
    x_start[r] = min(first_row + r, params.rows - 1) * chunks;

  float sum[kRows * kOutputs];
  [[unroll]] for (uint i = 0; i < kRows * kOutputs; ++i) sum[i] = 0.0;

  uint chunk = gl_SubgroupInvocationID;
  for (; chunk + (kAhead - 1) * gl_SubgroupSize < chunks; chunk += kAhead * gl_SubgroupSize) {
    Chunk w[kAhead * kOutputs];
    [[unroll]] for (uint a = 0; a < kAhead; ++a)
      [[unroll]] for (uint o = 0; o < kOutputs; ++o)
        w[a * kOutputs + o] = load_chunk(planes, w_start[o] + chunk + a * gl_SubgroupSize);
    [[unroll]] for (uint a = 0; a < kAhead; ++a)
      [[unroll]] for (uint r = 0; r < kRows; ++r)
        [[unroll]] for (uint o = 0; o < kOutputs; ++o)
          sum[r * kOutputs + o] +=
              dot_chunk(w[a * kOutputs + o], x,
                        (x_start[r] + chunk + a * gl_SubgroupSize) * (kChunkWeights / 4));
  }
  for (; chunk < chunks; chunk += gl_SubgroupSize) {
    [[unroll]] for (uint o = 0; o < kOutputs; ++o) {
      const Chunk w = load_chunk(planes, w_start[o] + chunk);
      [[unroll]] for (uint r = 0; r < kRows; ++r)
        sum[r * kOutputs + o] += dot_chunk(w, x, (x_start[r] + chunk) * (kChunkWeights / 4));
    }
  }

  [[unroll]] for (uint r = 0; r < kRows; ++r) {
    [[unroll]] for (uint o = 0; o < kOutputs; ++o) {
      const float total = subgroupAdd(sum[r * kOutputs + o]);
      if (gl_SubgroupInvocationID == o % gl_SubgroupSize && first + o < params.outputs &&
          first_row + r < params.rows)
        store_output(first_row + r, first + o, total);
    }
  }
}
