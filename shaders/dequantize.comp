// Weights as floats: y[r, c] = weight[r, c]
//
// An invocation unpacks one piece of 32 weights at a time; any number of workgroups covers them all.
//   workgroups = [up to ceil(rows * cols / 32 / local size), 1, 1]
// REQUIRES: addresses are multiples of 16; cols a multiple of the format's block, which is one weight
// for the float formats; rows * cols at most 2^31.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "params/dequantize.h"
#include "quant/glsl.h"
#include "weight_format.h"

#ifdef FORMAT_IS_FLOAT
// For rows that are not a whole number of pieces: pieces cross rows, and the last may be short.
void dequantize_ragged(Planes planes, uint invocation, uint invocations) {
  const uint weights = params.rows * params.cols;
  for (uint first = invocation * kPieceWeights; first < weights;
       first += invocations * kPieceWeights) {
    const uint end = min(first + kPieceWeights, weights);
    for (uint i = first; i < end; ++i) F32(params.y).at[i] = load_weight(planes, i);
  }
}
#endif

void main() {
  const uint invocation = gl_GlobalInvocationID.x;
  const uint invocations = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
  const Planes planes = planes_at(params.weight, params.rows * (params.cols / kBlockWeights));
#ifdef FORMAT_IS_FLOAT
  if (params.cols % kPieceWeights != 0) {
    dequantize_ragged(planes, invocation, invocations);
    return;
  }
#endif
  const uint pieces = params.rows * (params.cols / kPieceWeights);
  for (uint piece = invocation; piece < pieces; piece += invocations) {
    const FloatPiece unpacked = unpack_float_piece(planes, piece);
    [[unroll]] for (uint i = 0; i < 8; ++i) F32x4(params.y).at[piece * 8 + i] = unpacked.w[i];
  }
}
