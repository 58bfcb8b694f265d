#ifndef HEARTH_PARAMS_MATMUL_TILE_H
#define HEARTH_PARAMS_MATMUL_TILE_H
#include "params/product.h"

HEARTH_CONSTANTS(MatmulTile)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kEpilogue, 0)     // a sum of epilogue.h
  HEARTH_UINT(2, kTileRows, 64)
  HEARTH_UINT(3, kTileOutputs, 64)
  HEARTH_UINT(4, kTileInputs, 32)  // a multiple of 32
  HEARTH_UINT(5, kSplits, 1)
  HEARTH_UINT(6, kLaneRows, 4)
  HEARTH_UINT(7, kLaneOutputs, 4)
  HEARTH_OPTIONAL_FROM(8)
#if defined(EXPERTS) || defined(__cplusplus)
  HEARTH_UINT(8, kGate, kGateNone)
#endif
HEARTH_CONSTANTS_END

#endif
