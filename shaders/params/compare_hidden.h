#ifndef HEARTH_PARAMS_COMPARE_HIDDEN_H
#define HEARTH_PARAMS_COMPARE_HIDDEN_H
#include "common/interop.h"
#include "params/hidden_rows.h"

HEARTH_PARAMS(CompareHidden)
  reads_address x;            // [rows, width] f32
  reads_address comparisons;  // [comparisons] HiddenComparison
  reads_address pages;        // [slots, slot_pages] address of a page, [kHiddenPageTokens, width] f16
  writes_address similarity;  // [comparisons, kComparisonParts] f32
  uint width;                 // a multiple of 8
  uint slot_pages;
HEARTH_PARAMS_END

HEARTH_CONSTANTS(CompareHidden)
  HEARTH_WORKGROUP_SIZE
HEARTH_CONSTANTS_END

#endif
