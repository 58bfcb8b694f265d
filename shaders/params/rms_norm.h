#ifndef HEARTH_PARAMS_RMS_NORM_H
#define HEARTH_PARAMS_RMS_NORM_H
#include "common/interop.h"

HEARTH_PARAMS(RmsNorm)
  updates_address x;       // [rows, width] f32
  reads_address residual;  // [kResiduals, rows, width] f32
  reads_address weight;    // [width] f32
  writes_address y;        // [rows, width] f32 or f16, see kForm
  writes_address scales;   // [rows] f32, with kWriteScales: each row's 1 / sqrt(mean of x^2 + epsilon)
  uint width;
  uint residual_stride;    // floats from row to row
  uint partial_stride;     // floats from one residual to the next
  float epsilon;
HEARTH_PARAMS_END

HEARTH_CONSTANTS(RmsNorm)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kResiduals, 0)  // number of residuals to add
  HEARTH_UINT(2, kRegisterQuads, 0)
  HEARTH_UINT(3, kForm, 0)
  HEARTH_UINT(4, kWriteScales, 0)
HEARTH_CONSTANTS_END

#endif
