#ifndef HEARTH_PARAMS_EXPERTS_ONE_ROW_H
#define HEARTH_PARAMS_EXPERTS_ONE_ROW_H
#include "params/product.h"

HEARTH_CONSTANTS(ExpertsOneRow)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kEpilogue, 0)      // a sum of epilogue.h
  HEARTH_UINT(2, kInputs, 2880)
  HEARTH_UINT(3, kResults, 2880)    // per expert
  HEARTH_UINT(4, kSubgroups, 23)    // per workgroup
  HEARTH_UINT(5, kRounds, 12)       // of a workgroup, at most
  HEARTH_UINT(6, kAhead, 2)         // rounds whose weights are in flight
  HEARTH_UINT(7, kGate, kGateNone)
  HEARTH_UINT(8, kHalfResults, 0)   // 1: y is f16; only with gates
  HEARTH_UINT(9, kUsed, 4)          // experts per row
  HEARTH_UINT(10, kLaneExperts, 1)  // only with gates
  HEARTH_UINT(11, kOverAll, 0)      // 1: scales are shares of all experts
  HEARTH_UINT(12, kNorm, 0)         // 1: applies the RMS norm to x; only with gates
HEARTH_CONSTANTS_END

#endif
