#ifndef HEARTH_PARAMS_EXPERTS_INVOCATION_H
#define HEARTH_PARAMS_EXPERTS_INVOCATION_H
#include "params/product.h"

HEARTH_CONSTANTS(ExpertsInvocation)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kEpilogue, 0)  // a sum of epilogue.h
  HEARTH_UINT(2, kRows, 1)      // positions per tile
  HEARTH_UINT(3, kGate, kGateNone)
HEARTH_CONSTANTS_END

#endif
