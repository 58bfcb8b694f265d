#ifndef HEARTH_PARAMS_KEEP_HIDDEN_H
#define HEARTH_PARAMS_KEEP_HIDDEN_H
#include "common/interop.h"
#include "params/hidden_rows.h"

HEARTH_PARAMS(KeepHidden)
  reads_address x;        // [rows, width] f32
  reads_address places;   // [rows] HiddenPlace
  updates_address pages;  // [slots, slot_pages] address of a page, [kHiddenPageTokens, width] f16
  uint width;             // a multiple of 8
  uint slot_pages;
HEARTH_PARAMS_END

HEARTH_CONSTANTS(KeepHidden)
  HEARTH_WORKGROUP_SIZE
HEARTH_CONSTANTS_END

#endif
