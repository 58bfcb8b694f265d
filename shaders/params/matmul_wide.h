#ifndef HEARTH_PARAMS_MATMUL_WIDE_H
#define HEARTH_PARAMS_MATMUL_WIDE_H
#include "params/product.h"

HEARTH_CONSTANTS(MatmulWide)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kEpilogue, 0)      // a sum of epilogue.h
  HEARTH_UINT(2, kTileRows, 128)
  HEARTH_UINT(3, kTileOutputs, 256)
  HEARTH_UINT(4, kSplits, 1)
  HEARTH_UINT(5, kTailSplits, 1)
  HEARTH_UINT(6, kSubgroupRows, 64)
  HEARTH_UINT(7, kSubgroupOutputs, 64)
  HEARTH_UINT(8, kSubgroups, 8)     // per workgroup
  HEARTH_UINT(9, kGate, kGateNone)  // REQUIRES otherwise: kSplits == 1
  HEARTH_UINT(10, kHalfResults, 0)  // 1: y is f16; only with gates
  HEARTH_UINT(11, kInputs, 0)       // of float formats with whole tiles; 0: not constant
HEARTH_CONSTANTS_END

#endif
