#ifndef HEARTH_PARAMS_FRAGMENT_LANES_H
#define HEARTH_PARAMS_FRAGMENT_LANES_H
#include "common/interop.h"

// y[r, n] = sum over k of weight[n, k] * x[r, k], 16 rows, 8 outputs, 16 inputs.
HEARTH_PARAMS(FragmentLanes)
  reads_address x;       // [16, 16] f16
  reads_address weight;  // [8, 16] f16
  writes_address y;      // [16, 8] f32
HEARTH_PARAMS_END

#endif
