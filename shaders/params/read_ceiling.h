#ifndef HEARTH_PARAMS_READ_CEILING_H
#define HEARTH_PARAMS_READ_CEILING_H
#include "params/ceiling.h"

HEARTH_CONSTANTS(ReadCeiling)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kAhead, 4)
  HEARTH_UINT(2, kContiguous, 0)  // 1: every invocation reads a range of its own
HEARTH_CONSTANTS_END

#endif
