#include "common/interop.h"

HEARTH_PARAMS(RmsNorm)
  address x;         // [rows, width] f32
  address residual;  // [rows, width] f32, with kAdd
  address weight;    // [width] f32
  address y;         // [rows, width] f32
  address prepared;  // the same in the form kForm says
  uint width;
  float epsilon;
HEARTH_PARAMS_END
