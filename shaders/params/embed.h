#ifndef HEARTH_PARAMS_EMBED_H
#define HEARTH_PARAMS_EMBED_H
#include "common/interop.h"
#include "params/step.h"

HEARTH_PARAMS(Embed)
  reads_address ids;      // [rows] u32, with kSampledId an index into `sampled`
  reads_address sampled;  // u32
  reads_address weight;   // [vocabulary, width] in the kernel's weight format, device layout: of the ids
                          // first .. first + vocabulary - 1
  writes_address y;       // [rows, width] f32
  uint width;
  uint vocabulary;
  float scale;
  uint first;             // the id of the table's first row
HEARTH_PARAMS_END

HEARTH_CONSTANTS(Embed)
  HEARTH_WORKGROUP_SIZE
HEARTH_CONSTANTS_END

#endif
