// Prepares rows of x for integer kernels: see params/split_rows.h for the layout and the meaning.
//
// An invocation a piece of 32 floats; groups = [ceil(rows * pieces / group size), 1, 1].
// REQUIRES: inputs a multiple of 32, addresses multiples of 16.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "params/split_rows.h"

layout(local_size_x_id = 0) in;

const float kLargest = 32512.0;  // 127 * 256: the high byte must not round up past 127

void main() {
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
  const float inverse = most > 0.0 ? kLargest / most : 0.0;

  uint high[8], low[8];
  float sums[2] = float[2](0.0, 0.0);
  [[unroll]] for (uint i = 0; i < 8; ++i) {
    const ivec4 q = ivec4(round(values[i] * inverse));
    const ivec4 top = (q + 128) >> 8;
    const ivec4 rest = q - top * 256;
    high[i] = uint(top.x & 255) | uint(top.y & 255) << 8 | uint(top.z & 255) << 16 | uint(top.w) << 24;
    low[i] = uint(rest.x & 255) | uint(rest.y & 255) << 8 | uint(rest.z & 255) << 16 |
             uint(rest.w) << 24;
    sums[i / 4] += dot(values[i], vec4(1.0));
  }

  U32x4 split = U32x4(params.split);
  split.at[piece] = uvec4(high[0], high[1], high[2], high[3]);
  split.at[params.pieces + piece] = uvec4(high[4], high[5], high[6], high[7]);
  split.at[params.pieces * 2 + piece] = uvec4(low[0], low[1], low[2], low[3]);
  split.at[params.pieces * 3 + piece] = uvec4(low[4], low[5], low[6], low[7]);
  split.at[params.pieces * 4 + piece] =
      uvec4(floatBitsToUint(most / kLargest), floatBitsToUint(sums[0]), floatBitsToUint(sums[1]), 0);
}
