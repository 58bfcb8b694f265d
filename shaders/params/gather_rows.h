#ifndef HEARTH_PARAMS_GATHER_ROWS_H
#define HEARTH_PARAMS_GATHER_ROWS_H
#include "common/interop.h"
#include "params/step.h"

HEARTH_PARAMS(GatherRows)
  reads_address x;        // [source_rows, width] f32
  reads_address indices;  // [rows] u32
  writes_address y;       // [rows, width] f32
  uint width;
  uint source_rows;
HEARTH_PARAMS_END

HEARTH_CONSTANTS(GatherRows)
  HEARTH_WORKGROUP_SIZE
HEARTH_CONSTANTS_END

#endif
