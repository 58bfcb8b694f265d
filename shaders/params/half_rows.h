#ifndef HEARTH_PARAMS_HALF_ROWS_H
#define HEARTH_PARAMS_HALF_ROWS_H
#include "common/interop.h"

HEARTH_PARAMS(HalfRows)
  reads_address x;   // [rows, width] f32
  writes_address y;  // [rows, width] f16
  uint width;
HEARTH_PARAMS_END

HEARTH_CONSTANTS(HalfRows)
  HEARTH_WORKGROUP_SIZE
HEARTH_CONSTANTS_END

#endif
