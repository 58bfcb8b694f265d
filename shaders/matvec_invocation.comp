// Matrix times a few vectors, for CPU-type devices: y[r, n] = sum over k of weight[n, k] * x[r, k]
//
// An invocation computes one output for all kRows rows of x, alone: no barrier, no subgroup
// operation, 16-byte loads along its own row of the matrix.
//   groups = [ceil(outputs / group size), 1, 1]
// REQUIRES: inputs a multiple of 8, addresses multiples of 16.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "common/f16_chunk.glsl"
#include "params/matvec.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kRows = 1;  // of x, 1 to 8

void main() {
  const uint n = gl_GlobalInvocationID.x;
  if (n >= params.outputs) return;

  const uint chunks = params.inputs / 8;
  U32x4 weight = U32x4(params.weight + uint64_t(n) * chunks * 16);
  F32x4 x = F32x4(params.x);

  float sum[kRows];
  [[unroll]] for (uint r = 0; r < kRows; ++r) sum[r] = 0.0;
  for (uint chunk = 0; chunk < chunks; ++chunk) {
    const uvec4 w = weight.at[chunk];
    [[unroll]] for (uint r = 0; r < kRows; ++r)
      sum[r] += dot_f16_chunk(w, x.at[(r * chunks + chunk) * 2], x.at[(r * chunks + chunk) * 2 + 1]);
  }
  [[unroll]] for (uint r = 0; r < kRows; ++r)
    F32(params.y).at[r * params.outputs + n] = sum[r];
}
