#ifndef HEARTH_PARAMS_MLP_ACTIVATION_H
#define HEARTH_PARAMS_MLP_ACTIVATION_H
#include "common/interop.h"

HEARTH_PARAMS(MlpActivation)
  reads_address gate;  // [rows, width] f32, rows `stride` floats apart
  reads_address up;    // like gate
  writes_address y;    // [rows, width] f32 or f16, see kForm
  uint width;
  uint stride;
HEARTH_PARAMS_END

HEARTH_CONSTANTS(MlpActivation)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kActivation, 0)  // 0: SiLU; 1: GELU, its tanh form
  HEARTH_UINT(2, kUnroll, 1)
  HEARTH_UINT(3, kForm, 0)
HEARTH_CONSTANTS_END

#endif
