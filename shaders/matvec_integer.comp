// Matrix times a few vectors, for GPUs with packed 8-bit dot products. The formula is in
// params/matmul.h; x is what split_rows made of it, 15 bits of each float, and each piece of weights
// is summed exactly, in integers.
//
// A group computes kOutputs neighbouring outputs for kRows rows of x. Its lanes share k out, kPieces
// pieces of 32 weights each, and load all their weights at once; sums meet in shared memory.
//   groups = [ceil(outputs / kOutputs), ceil(rows / kRows), 1]
// REQUIRES: a quantized format, full subgroups, inputs <= 32 * kPieces * group size.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_integer_dot_product : require
#include "common/kernel.glsl"
#include "quant/glsl.h"
#include "weight_format.h"
#include "params/matmul.h"
#include "common/chain.glsl"
#include "common/matmul_output.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint kRows = 1;     // of x, 1 to 8
layout(constant_id = 3) const uint kOutputs = 4;  // of a group
layout(constant_id = 4) const uint kPieces = 1;   // of a lane
layout(constant_id = 5) const uint kSubgroups = 4;

// 32 elements of a row of x: value = scale * (256 * high + low).
struct SplitPiece {
  uint high[8];
  uint low[8];
  float scale;
  float sum0, sum1;  // of the first and the last 16 elements
};

const uint kLanes = gl_WorkGroupSize.x;
const uint kSums = kOutputs * kRows;
const uint kPartials = kSums * kSubgroups;
shared float partials[kPartials];  // [output, row, subgroup]

SplitPiece load_split(uint index, uint count) {
  U32x4 split = U32x4(params.x);
  const uvec4 h0 = split.at[index], h1 = split.at[count + index];
  const uvec4 l0 = split.at[2 * count + index], l1 = split.at[3 * count + index];
  const vec4 rest = uintBitsToFloat(split.at[4 * count + index]);
  return SplitPiece(uint[8](h0.x, h0.y, h0.z, h0.w, h1.x, h1.y, h1.z, h1.w),
                    uint[8](l0.x, l0.y, l0.z, l0.w, l1.x, l1.y, l1.z, l1.w), rest.x, rest.y,
                    rest.z);
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
                  : x.scale * (w.scale0 * float(high0 * 256 + low0) +
                               w.scale1 * float(high1 * 256 + low1));
  if (kHasOffset) sum += w.offset0 * x.sum0 + w.offset1 * x.sum1;
  return sum;
}

// Piece `place` of output n, or the last there is.
uint weight_piece(uint n, uint place, uint pieces) {
  return min(n, params.outputs - 1) * pieces + min(place, pieces - 1);
}

void main() {
  const uint lane = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  const uint first = gl_WorkGroupID.x * kOutputs;
  const uint first_row = gl_WorkGroupID.y * kRows;
  const uint pieces = params.inputs / kPieceWeights;  // in a row
  const Planes planes = planes_at(params.weight, params.outputs * (params.inputs / kBlockWeights));

  // Pieces, outputs and rows past the last one repeat it: loads stay inside. Pieces then count for
  // nothing, and the sums of outputs and rows are dropped.
  const uint kSlots = kOutputs * kPieces;
  RawPiece w[kSlots];
  [[unroll]] for (uint o = 0; o < kOutputs; ++o)
    [[unroll]] for (uint i = 0; i < kPieces; ++i)
      w[o * kPieces + i] = load_piece(planes, weight_piece(first + o, lane + i * kLanes, pieces));

  chain_wait();
  const uint kXPieces = kRows * kPieces;
  SplitPiece x[kXPieces];
  [[unroll]] for (uint r = 0; r < kRows; ++r) {
    [[unroll]] for (uint i = 0; i < kPieces; ++i) {
      const uint row = min(first_row + r, params.rows - 1), place = lane + i * kLanes;
      SplitPiece piece = load_split(row * pieces + min(place, pieces - 1), params.rows * pieces);
      if (place >= pieces) {
        piece.scale = 0.0;
        piece.sum0 = 0.0;
        piece.sum1 = 0.0;
      }
      x[r * kPieces + i] = piece;
    }
  }

  // An output at a time: the branch at its end keeps compilers from loading weights late.
  [[unroll]] for (uint o = 0; o < kOutputs; ++o) {
    float sum[kRows];
    [[unroll]] for (uint r = 0; r < kRows; ++r) sum[r] = 0.0;
    [[unroll]] for (uint i = 0; i < kPieces; ++i) {
      const Piece piece = decode_piece(w[o * kPieces + i],
                                       weight_piece(first + o, lane + i * kLanes, pieces));
      [[unroll]] for (uint r = 0; r < kRows; ++r) sum[r] += dot_piece(piece, x[r * kPieces + i]);
    }
    [[unroll]] for (uint r = 0; r < kRows; ++r) {
      const float total = subgroupAdd(sum[r]);
      if (gl_SubgroupInvocationID == 0)
        partials[(o * kRows + r) * kSubgroups + gl_SubgroupID] = total;
    }
  }

  barrier();
  for (uint i = lane; i < kSums; i += kLanes) {
    float total = 0.0;
    [[unroll]] for (uint s = 0; s < kSubgroups; ++s) total += partials[i * kSubgroups + s];
    const uint row = first_row + i % kRows, n = first + i / kRows;
    if (row < params.rows && n < params.outputs) store_output(row, n, total);
  }
  chain_done();
}
