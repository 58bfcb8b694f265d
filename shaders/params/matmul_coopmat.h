#ifndef HEARTH_PARAMS_MATMUL_COOPMAT_H
#define HEARTH_PARAMS_MATMUL_COOPMAT_H
#include "params/product.h"

HEARTH_CONSTANTS(MatmulCoopmat)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kEpilogue, 0)       // a sum of epilogue.h
  HEARTH_UINT(2, kTileRows, 64)
  HEARTH_UINT(3, kTileOutputs, 64)
  HEARTH_UINT(4, kTileInputs, 32)
  HEARTH_UINT(5, kSplits, 1)
  HEARTH_UINT(6, kSubgroupRows, 32)
  HEARTH_UINT(7, kSubgroupOutputs, 32)
  HEARTH_UINT(8, kFragmentRows, 16)  // M of a fragment
  HEARTH_UINT(9, kFragmentOutputs, 16)
  HEARTH_UINT(10, kFragmentInputs, 16)
  HEARTH_UINT(11, kSubgroups, 4)     // per workgroup
  HEARTH_UINT(12, kAhead, 1)
  HEARTH_UINT(13, kUnroll, 1)        // fragments along k whose loads may overlap
  HEARTH_UINT(14, kGate, kGateNone)  // REQUIRES otherwise: kSplits == 1, an even number of fragments across
  HEARTH_UINT(15, kHalfResults, 0)   // 1: y is f16; only with gates
  HEARTH_UINT(16, kUnrolledSteps, 0)
  HEARTH_UINT(17, kTailSplits, 1)
HEARTH_CONSTANTS_END

#endif
