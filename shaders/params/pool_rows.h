#ifndef HEARTH_PARAMS_POOL_ROWS_H
#define HEARTH_PARAMS_POOL_ROWS_H
#include "common/interop.h"

// Rows that are added up.
HEARTH_STRUCT(PoolRange)
  uint first_row;
  uint rows;  // 0: padding of the list, skipped
HEARTH_STRUCT_END

// The most rows of a range. Long ones are split, because a range is added up by one invocation per
// column.
HEARTH_CONSTANT(kMaxPoolRows, 64)

HEARTH_PARAMS(PoolRows)
  reads_address x;       // [rows, width] f32
  reads_address ranges;  // [ranges] PoolRange
  writes_address y;      // [ranges, width] f32
  uint width;
  uint rows;             // of x
HEARTH_PARAMS_END

HEARTH_CONSTANTS(PoolRows)
  HEARTH_WORKGROUP_SIZE
HEARTH_CONSTANTS_END

#endif
