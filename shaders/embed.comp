// Embedding lookup: y[r, i] = weight[id - first, i] * scale. id is ids[r]; if its bit kSampledId is set,
// the other bits are an index into `sampled`, which holds the token that the previous step sampled and
// that the host has not seen yet.
//
// The row of an id that the table does not have is zero: padding rows may hold any id, and if the
// vocabulary is divided over ranks, another rank has its row.
// One invocation per piece of 32 weights:
//   workgroups = [ceil(ceil(width / 32) / local size), rows, 1]
// REQUIRES: the addresses of weight and y are multiples of 16; width a multiple of the format's block,
// which is one weight for the float formats; vocabulary * width below 2^32.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "params/embed.h"
#include "quant/glsl.h"
#include "weight_format.h"

void main() {
  const uint row = gl_WorkGroupID.y;
  const uint piece = gl_GlobalInvocationID.x;
  if (piece * kPieceWeights >= params.width) return;
  // Reads both, because some drivers load even if the branch is not taken.
  const uint given = U32(params.ids).at[row];
  const bool is_sampled = (given & kSampledId) != 0;
  const uint sampled = U32(params.sampled).at[is_sampled ? given & ~kSampledId : 0];
  const uint place = (is_sampled ? sampled : given) - params.first;
  const float scale = place < params.vocabulary ? params.scale : 0;
  const uint id = min(place, params.vocabulary - 1);
  const Planes planes =
      planes_at(params.weight, params.vocabulary * (params.width / kBlockWeights));
  const uint64_t y_row = params.y + uint64_t(row) * params.width * 4;

#ifdef FORMAT_IS_FLOAT
  // Rows that are not a whole number of pieces are not aligned for wide loads.
  if (params.width % kPieceWeights != 0) {
    const uint end = min((piece + 1) * kPieceWeights, params.width);
    for (uint i = piece * kPieceWeights; i < end; ++i)
      F32(y_row).at[i] = load_weight(planes, id * params.width + i) * scale;
    return;
  }
#endif
  const FloatPiece unpacked =
      unpack_float_piece(planes, id * (params.width / kPieceWeights) + piece);
  [[unroll]] for (uint i = 0; i < 8; ++i)
    F32x4(y_row).at[piece * 8 + i] = unpacked.w[i] * scale;
}
