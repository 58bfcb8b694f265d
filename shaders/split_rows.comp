// Prepares rows of x for integer kernels: see params/split_rows.h for the layout and the meaning.
//
// An invocation a piece of 32 floats; groups = [ceil(rows * pieces / group size), 1, 1].
// REQUIRES: inputs a multiple of 32, addresses multiples of 16.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "common/split.glsl"
#include "params/split_rows.h"
#include "common/chain.glsl"

layout(local_size_x_id = 0) in;

void split_row() {
  const uint piece = gl_GlobalInvocationID.x;
  if (piece >= params.pieces) return;
  F32x4 x = F32x4(params.x + uint64_t(piece) * 128);

  vec4 values[8];
  vec4 largest = vec4(0.0);
  [[unroll]] for (uint i = 0; i < 8; ++i) {
    values[i] = x.at[i];
    largest = max(largest, abs(values[i]));
  }
  const float most = max(max(largest.x, largest.y), max(largest.z, largest.w));

  uint high[8], low[8];
  float sums[2] = float[2](0.0, 0.0);
  [[unroll]] for (uint i = 0; i < 8; ++i) {
    const uvec2 split = split_quad(values[i], most);
    high[i] = split.x;
    low[i] = split.y;
    sums[i / 4] += dot(values[i], vec4(1.0));
  }

  U32x4 split = U32x4(params.split);
  split.at[piece] = uvec4(high[0], high[1], high[2], high[3]);
  split.at[params.pieces + piece] = uvec4(high[4], high[5], high[6], high[7]);
  split.at[params.pieces * 2 + piece] = uvec4(low[0], low[1], low[2], low[3]);
  split.at[params.pieces * 3 + piece] = uvec4(low[4], low[5], low[6], low[7]);
  split.at[params.pieces * 4 + piece] =
      floatBitsToUint(vec4(most / kLargestSplit, sums[0], sums[1], 0.0));
}

void main() {
  chain_wait();
  split_row();
  chain_done();
}
