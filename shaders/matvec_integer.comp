// Matrix times a few vectors, for GPUs with packed 8-bit dot products. The formula is in
// params/matmul.h; x is what split_rows made of it, 15 bits of each float, and each piece of weights
// is summed exactly, in integers.
//
// A subgroup computes kOutputs neighbouring outputs for kRows rows of x; its lanes walk along k, a
// piece of 32 weights each, kAhead steps at a time.
//   groups = [ceil(outputs / (kOutputs * subgroups in a group)), ceil(rows / kRows), 1]
// REQUIRES: a quantized format, full subgroups.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_integer_dot_product : require
#include "common/kernel.glsl"
#include "quant/glsl.h"
#include "weight_format.h"
#include "params/matmul.h"
#include "common/matmul_output.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint kRows = 1;     // of x that a subgroup takes, 1 to 8
layout(constant_id = 3) const uint kOutputs = 2;  // a subgroup
layout(constant_id = 4) const uint kAhead = 2;    // steps along k whose loads are issued together

// 32 elements of a row of x.
struct SplitPiece {
  uint high[8];
  uint low[8];
  float scale;
  float sum0, sum1;  // of the first and the last 16 elements
};

SplitPiece load_split(uint index, uint count) {
  U32x4 split = U32x4(params.x);
  const uvec4 h0 = split.at[index], h1 = split.at[count + index];
  const uvec4 l0 = split.at[2 * count + index], l1 = split.at[3 * count + index];
  const vec4 rest = uintBitsToFloat(split.at[4 * count + index]);
  return SplitPiece(uint[8](h0.x, h0.y, h0.z, h0.w, h1.x, h1.y, h1.z, h1.w),
                    uint[8](l0.x, l0.y, l0.z, l0.w, l1.x, l1.y, l1.z, l1.w), rest.x, rest.y, rest.z);
}

float dot_piece(Piece w, SplitPiece x) {
  int high0 = 0, high1 = 0, low0 = 0, low1 = 0;
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    high0 += dotPacked4x8EXT(int(w.q[i]), int(x.high[i]));
    low0 += dotPacked4x8EXT(int(w.q[i]), int(x.low[i]));
    high1 += dotPacked4x8EXT(int(w.q[i + 4]), int(x.high[i + 4]));
    low1 += dotPacked4x8EXT(int(w.q[i + 4]), int(x.low[i + 4]));
  }
  float sum = kPieceScales == 1
                  ? w.scale0 * x.scale * float((high0 + high1) * 256 + low0 + low1)
                  : x.scale * (w.scale0 * float(high0 * 256 + low0) + w.scale1 * float(high1 * 256 + low1));
  if (kHasOffset) sum += w.offset0 * x.sum0 + w.offset1 * x.sum1;
  return sum;
}

void main() {
  const uint first = (gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID) * kOutputs;
  if (first >= params.outputs) return;
  const uint first_row = gl_WorkGroupID.y * kRows;

  const uint pieces = params.inputs / kPieceWeights;  // in a row
  const Planes planes = planes_at(params.weight, params.outputs * (params.inputs / kBlockWeights));

  // Outputs and rows past the last one repeat it: loads stay inside, the sums are dropped.
  uint w_start[kOutputs];
  [[unroll]] for (uint o = 0; o < kOutputs; ++o)
    w_start[o] = min(first + o, params.outputs - 1) * pieces;
  uint x_start[kRows];
  [[unroll]] for (uint r = 0; r < kRows; ++r)
    x_start[r] = min(first_row + r, params.rows - 1) * pieces;

  float sum[kRows * kOutputs];
  [[unroll]] for (uint i = 0; i < kRows * kOutputs; ++i) sum[i] = 0.0;

  uint piece = gl_SubgroupInvocationID;
  for (; piece + (kAhead - 1) * gl_SubgroupSize < pieces; piece += kAhead * gl_SubgroupSize) {
    Piece w[kAhead * kOutputs];
    [[unroll]] for (uint a = 0; a < kAhead; ++a)
      [[unroll]] for (uint o = 0; o < kOutputs; ++o)
        w[a * kOutputs + o] = unpack_piece(planes, w_start[o] + piece + a * gl_SubgroupSize);
    [[unroll]] for (uint a = 0; a < kAhead; ++a) {
      [[unroll]] for (uint r = 0; r < kRows; ++r) {
        const SplitPiece x =
            load_split(x_start[r] + piece + a * gl_SubgroupSize, params.rows * pieces);
        [[unroll]] for (uint o = 0; o < kOutputs; ++o)
          sum[r * kOutputs + o] += dot_piece(w[a * kOutputs + o], x);
      }
    }
  }
  for (; piece < pieces; piece += gl_SubgroupSize) {
    Piece w[kOutputs];
    [[unroll]] for (uint o = 0; o < kOutputs; ++o) w[o] = unpack_piece(planes, w_start[o] + piece);
    [[unroll]] for (uint r = 0; r < kRows; ++r) {
      const SplitPiece x = load_split(x_start[r] + piece, params.rows * pieces);
      [[unroll]] for (uint o = 0; o < kOutputs; ++o) sum[r * kOutputs + o] += dot_piece(w[o], x);
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
