#include "common/interop.h"

HEARTH_PARAMS(RmsNorm)
  address x;       // [rows, width] f32
  address weight;  // [width] f32
  address y;       // [rows, width] f32
  uint width;
  float epsilon;
HEARTH_PARAMS_END
