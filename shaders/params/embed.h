#include "common/interop.h"

HEARTH_PARAMS(Embed)
  address ids;     // [rows] u32
  address weight;  // [vocabulary, width] in the kernel's weight format, device layout
  address y;       // [rows, width] f32
  uint width;
  uint vocabulary;
  float scale;
HEARTH_PARAMS_END
