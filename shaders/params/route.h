#ifndef HEARTH_PARAMS_ROUTE_H
#define HEARTH_PARAMS_ROUTE_H
#include "common/interop.h"

HEARTH_PARAMS(Route)
  reads_address logits;    // [rows, experts] f32
  writes_address chosen;   // [rows, used] u32: the experts of each row, the likeliest first
  writes_address weights;  // [rows, used] f32
  uint experts;
HEARTH_PARAMS_END

HEARTH_CONSTANTS(Route)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kUsed, 8)
  HEARTH_UINT(2, kLaneExperts, 4)
  HEARTH_UINT(3, kOverAll, 0)
HEARTH_CONSTANTS_END

#endif
