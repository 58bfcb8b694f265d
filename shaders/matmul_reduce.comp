// Adds up the partial sums of a split-k matmul, sum over splits of partial[split, row, output], and
// applies the epilogue of params/matmul.h. One invocation per four outputs.
//   workgroups = [ceil(outputs / (4 * local size)), rows, 1]
//   x holds the partial sums: [kSplits, rows] rows of f32, params.partial_stride floats apart; rows are
//   rounded up to whole tiles of kTileRows
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "params/matmul_reduce.h"
#include "common/chain.glsl"
#include "common/matmul_output.glsl"

void add_up() {
  const uint row = gl_WorkGroupID.y;
  const uint n = gl_GlobalInvocationID.x * 4;
  if (n >= params.outputs) return;
  const uint rows = DIVIDE_UP(params.rows, kTileRows) * kTileRows;
  F32x4 partial = F32x4(params.x);
  const vec4 residual = load_residual_quad(row, n);
  vec4 parts[kSplits];
  [[unroll]] for (uint s = 0; s < kSplits; ++s)
    parts[s] = partial.at[((s * rows + row) * params.partial_stride + n) / 4];
  vec4 sum = parts[0];
  [[unroll]] for (uint s = 1; s < kSplits; ++s) sum += parts[s];
  store_output_quad(row, n, sum, residual);
}

void main() {
  chain_wait();
  add_up();
  chain_done();
}
