#ifndef HEARTH_PARAMS_MATMUL_TEAM_H
#define HEARTH_PARAMS_MATMUL_TEAM_H
#include "params/product.h"

HEARTH_CONSTANTS(MatmulTeam)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kEpilogue, 0)         // a sum of epilogue.h
  HEARTH_UINT(2, kInputs, 4096)
  HEARTH_UINT(3, kSplits, 1)
  HEARTH_UINT(4, kSubgroups, 16)       // per workgroup
  HEARTH_UINT(5, kRounds, 1)
  HEARTH_UINT(6, kColumns, 1)          // 1 or 2 fragments of x
  HEARTH_UINT(7, kGate, kGateNone)
  HEARTH_UINT(8, kHalfResults, 0)      // 1: y is f16; only with gates
  HEARTH_UINT(9, kNorm, kNormNone)
  HEARTH_UINT(10, kNormWorkgroups, 1)  // workgroups of the product that started the norm
HEARTH_CONSTANTS_END

#endif
