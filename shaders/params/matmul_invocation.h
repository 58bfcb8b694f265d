#ifndef HEARTH_PARAMS_MATMUL_INVOCATION_H
#define HEARTH_PARAMS_MATMUL_INVOCATION_H
#include "params/product.h"

HEARTH_CONSTANTS(MatmulInvocation)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kEpilogue, 0)  // a sum of epilogue.h
  HEARTH_UINT(2, kRows, 1)      // rows of x per invocation
HEARTH_CONSTANTS_END

#endif
