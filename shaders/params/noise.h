#ifndef HEARTH_PARAMS_NOISE_H
#define HEARTH_PARAMS_NOISE_H
#include "common/interop.h"

HEARTH_PARAMS(Noise)
  reads_address bits;    // [count] u32
  writes_address noise;  // [count] f32
  writes_address most;   // [count] f32: its upper bound
  uint count;
HEARTH_PARAMS_END

HEARTH_CONSTANTS(Noise)
  HEARTH_WORKGROUP_SIZE
HEARTH_CONSTANTS_END

#endif
