#ifndef HEARTH_PARAMS_MATVEC_FLOAT_H
#define HEARTH_PARAMS_MATVEC_FLOAT_H
#include "params/product.h"

HEARTH_CONSTANTS(MatvecFloat)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kEpilogue, 0)  // a sum of epilogue.h
  HEARTH_UINT(2, kRows, 1)      // rows of x per subgroup, 1 to 8
  HEARTH_UINT(3, kOutputs, 2)   // per subgroup
  HEARTH_UINT(4, kAhead, 4)     // steps along k whose loads are issued together
  HEARTH_UINT(5, kGate, kGateNone)
  HEARTH_OPTIONAL_FROM(6)
  HEARTH_UNUSED(6, kUnused6, 0)
  HEARTH_UNUSED(7, kUnused7, 0)
  HEARTH_UNUSED(8, kUnused8, 0)
  HEARTH_UNUSED(9, kUnused9, 0)
  HEARTH_ROUTE_CONSTANTS
HEARTH_CONSTANTS_END

#endif
