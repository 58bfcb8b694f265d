#ifndef HEARTH_PARAMS_COMBINE_EXPERTS_H
#define HEARTH_PARAMS_COMBINE_EXPERTS_H
#include "common/interop.h"

HEARTH_PARAMS(CombineExperts)
  address x;       // [positions, width] f32
  address places;  // [rows, used] u32: the position of each of a row's experts
  address y;       // [rows, width] f32
  uint width;      // a multiple of 4
HEARTH_PARAMS_END

#endif
