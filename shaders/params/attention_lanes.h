#ifndef HEARTH_PARAMS_ATTENTION_LANES_H
#define HEARTH_PARAMS_ATTENTION_LANES_H
#include "params/attention.h"

HEARTH_CONSTANTS(AttentionLanes)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UNUSED(1, kSubgroupSize, 32)
  HEARTH_UINT(2, kSubgroups, 4)  // per workgroup
  HEARTH_UINT(3, kHeadSize, 128)
  HEARTH_UNUSED(4, kM, 16)
  HEARTH_UNUSED(5, kN, 8)
  HEARTH_UNUSED(6, kK, 16)
  HEARTH_UINT(7, kKeys, 32)      // per tile
  HEARTH_UNUSED(8, kDirect, 0)
  HEARTH_OPTIONAL_FROM(9)
  HEARTH_UINT(9, kForm, 0)       // kFormFloats or kFormHalves
  HEARTH_UINT(10, kHeads, 1)
  HEARTH_UINT(11, kKvHeads, 1)
  HEARTH_FLOAT(12, kScale, 1.0f)
HEARTH_CONSTANTS_END

#endif
