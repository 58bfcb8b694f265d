#ifndef HEARTH_PARAMS_MATVEC_INTEGER_H
#define HEARTH_PARAMS_MATVEC_INTEGER_H
#include "params/product.h"

HEARTH_CONSTANTS(MatvecInteger)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kEpilogue, 0)      // a sum of epilogue.h
  HEARTH_UINT(2, kRows, 1)          // of x
  HEARTH_UINT(3, kOutputs, 8)       // per team and round
  HEARTH_UINT(4, kPieces, 1)        // per lane
  HEARTH_UINT(5, kSubgroups, 4)
  HEARTH_UINT(6, kRounds, 1)
  HEARTH_UINT(7, kNorm, 0)          // 1: the RMS norm of x, one row, is applied first
  HEARTH_UINT(8, kGate, kGateNone)  // REQUIRES otherwise: kOutputs even
  HEARTH_UINT(9, kTeams, 1)
  HEARTH_OPTIONAL_FROM(10)
  HEARTH_ROUTE_CONSTANTS
#if defined(EXPERT_SUMS) || defined(__cplusplus)
  HEARTH_UINT(13, kExpertInputs, 768)  // of one expert
#endif
HEARTH_CONSTANTS_END

#endif
