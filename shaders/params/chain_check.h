#ifndef HEARTH_PARAMS_CHAIN_CHECK_H
#define HEARTH_PARAMS_CHAIN_CHECK_H
#include "common/interop.h"

HEARTH_CONSTANT(kChainCheckGroup, 64)  // invocations per workgroup

// to[i] = from[(i + distance) % n] + 1, n = kChainCheckGroup * workgroups
HEARTH_PARAMS(ChainCheck)
  reads_address from;  // [n] f32
  writes_address to;   // [n] f32
  uint distance;
  uint fresh;          // 1: waits and reads as kernels with fresh views do
HEARTH_PARAMS_END

#endif
