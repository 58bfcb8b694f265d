#ifndef HEARTH_PARAMS_ATTENTION_TILE_H
#define HEARTH_PARAMS_ATTENTION_TILE_H
#include "params/attention.h"

HEARTH_CONSTANTS(AttentionTile)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kSubgroupSize, 32)
  HEARTH_UINT(2, kSubgroups, 4)  // per workgroup
  HEARTH_UINT(3, kHeadSize, 128)
  HEARTH_UINT(4, kM, 16)         // a cooperative matrix product is kM x kN x kK
  HEARTH_UINT(5, kN, 16)
  HEARTH_UINT(6, kK, 16)
  HEARTH_UINT(7, kKeys, 32)      // per tile
  HEARTH_UINT(8, kDirect, 0)     // 1: REQUIRES f16 sums of kM x kN
  HEARTH_OPTIONAL_FROM(9)
  HEARTH_UINT(9, kForm, 0)       // kFormFloats or kFormHalves
  HEARTH_UINT(10, kHeads, 1)
  HEARTH_UINT(11, kKvHeads, 1)
  HEARTH_FLOAT(12, kScale, 1.0f)
HEARTH_CONSTANTS_END

#endif
