// Matrix times vectors, for CPU-type devices. The formula is in params/matmul.h.
//
// Each invocation computes one output for kRows rows of x on its own: no barrier, no subgroup
// operation, 16-byte loads along its row of the matrix.
//   workgroups = [ceil(outputs / local size), ceil(rows / kRows), 1]
// REQUIRES: inputs a multiple of the format's block and of 4, addresses multiples of 16.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "quant/glsl.h"
#include "weight_format.h"
#include "params/matmul_invocation.h"
#include "common/matmul_output.glsl"

#include "common/weight_dot.glsl"

void main() {
  const uint n = gl_GlobalInvocationID.x;
  if (n >= params.outputs) return;
  const uint first_row = gl_WorkGroupID.y * kRows;

  const uint pieces = params.inputs / kPieceWeights;
  const Planes planes = planes_at(params.weight, params.outputs * (params.inputs / kBlockWeights));
  F32x4 x = F32x4(params.x);

  // Rows past the last are clamped to it; their sums are dropped.
  uint row_start[kRows];
  [[unroll]] for (uint r = 0; r < kRows; ++r)
    row_start[r] = min(first_row + r, params.rows - 1) * (params.inputs / 4);

  float sum[kRows];
  [[unroll]] for (uint r = 0; r < kRows; ++r) sum[r] = 0.0;

#ifdef FORMAT_IS_FLOAT
  // Rows of any length: pieces do not begin at multiples of 32 of the matrix.
  if (params.inputs % kPieceWeights != 0) {
    for (uint k = 0; k < params.inputs; ++k) {
      const float w = load_weight(planes, n * params.inputs + k);
      [[unroll]] for (uint r = 0; r < kRows; ++r) sum[r] += w * x.at[row_start[r] + k / 4][k % 4];
    }
  } else
#endif
  {
    for (uint piece = 0; piece < pieces; ++piece) {
      const Weights w = load_weights(planes, n * pieces + piece);
      [[unroll]] for (uint r = 0; r < kRows; ++r) sum[r] += dot_weights(w, x, row_start[r] + piece * 8);
    }
  }
  [[unroll]] for (uint r = 0; r < kRows; ++r)
    if (first_row + r < params.rows)
      store_output(first_row + r, n, sum[r], load_residual(first_row + r, n));
}
