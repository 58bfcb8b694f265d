#include "common/interop.h"

HEARTH_PARAMS(Matvec)
  address weight;  // [outputs, inputs] in the kernel's weight format
  address x;       // [rows, inputs] f32
  address y;       // [rows, outputs] f32
  uint inputs;
  uint outputs;
HEARTH_PARAMS_END
