#ifndef HEARTH_PARAMS_EXPERTS_FEW_H
#define HEARTH_PARAMS_EXPERTS_FEW_H
#include "params/product.h"

HEARTH_CONSTANTS(ExpertsFew)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kEpilogue, 0)      // a sum of epilogue.h
  HEARTH_UINT(2, kInputs, 4096)
  HEARTH_UINT(3, kSplits, 1)
  HEARTH_UINT(4, kSubgroups, 16)    // per workgroup
  HEARTH_UINT(5, kRounds, 1)
  HEARTH_UINT(6, kColumns, 1)       // 1 or 2 fragments of x
  HEARTH_UINT(7, kGate, kGateNone)
  HEARTH_UINT(8, kHalfResults, 0)   // 1: y is f16; only with gates
  HEARTH_UINT(9, kUsed, 4)          // experts per row
  HEARTH_UINT(10, kExperts, 32)
  HEARTH_UINT(11, kLaneExperts, 1)  // only with kRoutes
  HEARTH_UINT(12, kRoutes, 0)       // 1: chooses the experts and writes tiles and scales
  HEARTH_UINT(13, kOverAll, 0)      // then scales are shares of all experts
  HEARTH_UINT(14, kNorm, 0)         // 1: applies the RMS norm to x; only with gates
HEARTH_CONSTANTS_END

#endif
