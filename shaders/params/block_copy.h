#ifndef HEARTH_PARAMS_BLOCK_COPY_H
#define HEARTH_PARAMS_BLOCK_COPY_H
#include "common/interop.h"

// An array of blocks at both ends: the keys, the values or the scales of one layer.
HEARTH_STRUCT(CopyPlane)
  address from;
  address to;
  uint block_bytes;  // a multiple of 16
  uint unused;
HEARTH_STRUCT_END

// Copies block `from` of every plane's source to block `to` of its target.
HEARTH_STRUCT(CopyPair)
  uint from;
  uint to;
HEARTH_STRUCT_END

// In CopyPair::from: an unused entry of the list.
HEARTH_CONSTANT(kNoBlock, 0xffffffffu)

HEARTH_PARAMS(BlockCopy)
  reads_address pairs;   // [pairs] CopyPair
  reads_address planes;  // [planes] CopyPlane
  HEARTH_FINDS_TO_READ(from)  // where the planes say
  HEARTH_FINDS_TO_WRITE(to)
HEARTH_PARAMS_END

HEARTH_CONSTANTS(BlockCopy)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kAhead, 4)
HEARTH_CONSTANTS_END

#endif
