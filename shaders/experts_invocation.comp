// Experts' products for CPU-type devices. The formula is in params/experts.h.
//
// Each invocation computes one result for the kRows positions of a tile on its own, with gates the sums
// of a gate and its up: no barrier, no subgroup operation, 16-byte loads along its rows of the matrix.
//   workgroups = [ceil(results / local size), tiles, 1]
// REQUIRES: inputs a multiple of the format's block and of 4, addresses multiples of 16.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "quant/glsl.h"
#include "weight_format.h"
#include "common/activation.glsl"
#define EXPERTS
#include "params/experts_invocation.h"
#include "common/chain.glsl"
#include "common/matmul_output.glsl"
#include "common/weight_dot.glsl"

// The products of row n of the matrix with the tile's rows of x.
void multiply(Planes planes, uint n, uint row_start[kRows], out float sum[kRows]) {
  const uint pieces = params.inputs / kPieceWeights;
  F32x4 x = F32x4(params.x);
  [[unroll]] for (uint r = 0; r < kRows; ++r) sum[r] = 0.0;
#ifdef FORMAT_IS_FLOAT
  // Rows of any length: pieces do not begin at multiples of 32 of the matrix.
  if (params.inputs % kPieceWeights != 0) {
    for (uint k = 0; k < params.inputs; ++k) {
      const float w = load_weight(planes, n * params.inputs + k);
      [[unroll]] for (uint r = 0; r < kRows; ++r) sum[r] += w * x.at[row_start[r] + k / 4][k % 4];
    }
    return;
  }
#endif
  for (uint piece = 0; piece < pieces; ++piece) {
    const Weights w = load_weights(planes, n * pieces + piece);
    [[unroll]] for (uint r = 0; r < kRows; ++r) sum[r] += dot_weights(w, x, row_start[r] + piece * 8);
  }
}

void compute(uint n, uint results) {
  const uint first = gl_WorkGroupID.y * kRows;
  const Planes planes = planes_at(EXPERT_WEIGHTS, params.outputs * (params.inputs / kBlockWeights));
  uint row_start[kRows];
  [[unroll]] for (uint r = 0; r < kRows; ++r)
    row_start[r] = source_row(first + r) * (params.inputs / 4);
  float sum[kRows], up[kRows];
  multiply(planes, n, row_start, sum);
  if (kGate != kGateNone) multiply(planes, n + results, row_start, up);
  [[unroll]] for (uint r = 0; r < kRows; ++r) {
    if (kGate == kGateNone) {
      store_output(first + r, n, sum[r], 0.0);
    } else {
      F32(params.y).at[(first + r) * results + n] =
          GATED(sum[r] + expert_bias(n), up[r] + expert_bias(n + results));
    }
  }
}

void main() {
  const uint n = gl_GlobalInvocationID.x;
  const uint results = kGate == kGateNone ? params.outputs : params.outputs / 2;
  if (begin_expert(gl_WorkGroupID.y) && n < results) compute(n, results);
  chain_done();
}
