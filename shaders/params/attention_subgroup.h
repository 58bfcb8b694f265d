#ifndef HEARTH_PARAMS_ATTENTION_SUBGROUP_H
#define HEARTH_PARAMS_ATTENTION_SUBGROUP_H
#include "params/attention.h"

HEARTH_CONSTANTS(AttentionSubgroup)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kHeadSize, 128)
  HEARTH_UINT(2, kRows, 4)
  HEARTH_OPTIONAL_FROM(3)
  HEARTH_UINT(3, kForm, 0)  // of the result (common/row_form.glsl)
  HEARTH_UINT(4, kHeads, 1)
  HEARTH_UINT(5, kKvHeads, 1)
  HEARTH_FLOAT(6, kScale, 1.0f)
HEARTH_CONSTANTS_END

#endif
