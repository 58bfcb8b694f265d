// Rows of x for integer kernels. Each piece of 32 floats becomes 16-bit integers with one scale,
// split into a high and a low byte (value = scale * (256 * high + low), both signed), so that packed
// 8-bit dot products keep 15 bits of x. Laid out as kSplitPlanes planes of 16 bytes a piece,
// [plane, row, piece]: high bytes of elements 0 to 15, of 16 to 31, low bytes of 0 to 15, of 16 to 31,
// and then scale, the sum of elements 0 to 15, the sum of 16 to 31, and 0 as floats.
#ifndef HEARTH_PARAMS_SPLIT_ROWS_H
#define HEARTH_PARAMS_SPLIT_ROWS_H
#include "common/interop.h"

HEARTH_CONSTANT(kSplitPlanes, 5u)

HEARTH_PARAMS(SplitRows)
  address x;      // [rows, inputs] f32
  address split;  // kSplitPlanes x [rows, inputs / 32] x 16 bytes
  uint pieces;    // rows * inputs / 32
HEARTH_PARAMS_END

#endif
