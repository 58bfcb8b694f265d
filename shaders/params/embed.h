#ifndef HEARTH_PARAMS_EMBED_H
#define HEARTH_PARAMS_EMBED_H
#include "common/interop.h"

// In an id: the rest of it is an index into `sampled`, where the last step left the real one.
HEARTH_CONSTANT(kSampledId, 0x80000000u)

HEARTH_PARAMS(Embed)
  address ids;      // [rows] u32
  address sampled;  // u32
  address weight;   // [vocabulary, width] in the kernel's weight format, device layout
  address y;        // [rows, width] f32
  uint width;
  uint vocabulary;
  float scale;
HEARTH_PARAMS_END

#endif
