#ifndef HEARTH_PARAMS_RMS_NORM_H
#define HEARTH_PARAMS_RMS_NORM_H
#include "common/interop.h"

HEARTH_PARAMS(RmsNorm)
  address x;         // [rows, width] f32
  address residual;  // [kResiduals, rows, width] f32
  address weight;    // [width] f32
  address y;         // [rows, width] in the form kForm says
  address scales;    // [rows] f32, only with kWriteScales: what rows were multiplied by, but for the weight
  uint width;
  uint residual_stride;  // floats from row to row
  uint part_stride;      // and from one residual to the next
  float epsilon;
HEARTH_PARAMS_END

#endif
