#ifndef HEARTH_PARAMS_DEQUANTIZE_H
#define HEARTH_PARAMS_DEQUANTIZE_H
#include "common/interop.h"

HEARTH_PARAMS(Dequantize)
  reads_address weight;  // [rows, cols] in the kernel's weight format, device layout
  writes_address y;      // [rows, cols] f32
  uint rows;
  uint cols;
HEARTH_PARAMS_END

HEARTH_CONSTANTS(Dequantize)
  HEARTH_WORKGROUP_SIZE
HEARTH_CONSTANTS_END

#endif
