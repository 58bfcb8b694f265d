#ifndef HEARTH_PARAMS_COMBINE_EXPERTS_H
#define HEARTH_PARAMS_COMBINE_EXPERTS_H
#include "common/interop.h"

HEARTH_PARAMS(CombineExperts)
  reads_address x;       // [positions, width] f32
  reads_address places;  // [rows, used] u32: the position of each of a row's experts
  updates_address y;     // [rows, width] f32
  uint width;            // a multiple of 4
HEARTH_PARAMS_END

HEARTH_CONSTANTS(CombineExperts)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kUsed, 8)
  HEARTH_UINT(2, kGrouped, 1)  // 0: position r * kUsed + k instead of places[r, k]
HEARTH_CONSTANTS_END

#endif
