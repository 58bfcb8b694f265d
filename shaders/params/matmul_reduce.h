#ifndef HEARTH_PARAMS_MATMUL_REDUCE_H
#define HEARTH_PARAMS_MATMUL_REDUCE_H
#include "params/product.h"

HEARTH_CONSTANTS(MatmulReduce)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kEpilogue, 0)  // a sum of epilogue.h
  HEARTH_UINT(2, kSplits, 2)
  HEARTH_UINT(3, kTileRows, 64)
HEARTH_CONSTANTS_END

#endif
