#ifndef HEARTH_PARAMS_MATMUL_DIRECT_H
#define HEARTH_PARAMS_MATMUL_DIRECT_H
#include "params/product.h"

HEARTH_CONSTANTS(MatmulDirect)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kEpilogue, 0)      // a sum of epilogue.h
  HEARTH_UINT(2, kTileRows, 64)
  HEARTH_UINT(3, kTileOutputs, 128)
  HEARTH_UINT(4, kBuffers, 1)       // steps of x in shared memory, 1 or 2
  HEARTH_UINT(5, kSplits, 1)
  HEARTH_UINT(6, kSubgroupOutputs, 32)
  HEARTH_UINT(7, kSubgroups, 4)     // per workgroup
  HEARTH_UINT(8, kGate, kGateNone)  // REQUIRES otherwise: kSplits == 1, an even number of fragments across
  HEARTH_UINT(9, kHalfResults, 0)   // 1: y is f16; only with gates
HEARTH_CONSTANTS_END

#endif
