#ifndef HEARTH_PARAMS_MLP_ACTIVATION_H
#define HEARTH_PARAMS_MLP_ACTIVATION_H
#include "common/interop.h"

HEARTH_PARAMS(MlpActivation)
  address gate;  // [rows, width] f32, rows `stride` floats apart
  address up;    // like gate
  address y;     // [rows, width] f32 or f16, see kForm
  uint width;
  uint stride;
HEARTH_PARAMS_END

#endif
