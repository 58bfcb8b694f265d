#ifndef HEARTH_PARAMS_CEILING_H
#define HEARTH_PARAMS_CEILING_H
#include "common/interop.h"

HEARTH_PARAMS(Ceiling)
  reads_address data;     // read_ceiling: [chunks] uvec4
  writes_address result;  // [workgroups] u32, written only to keep the compiler from removing the work
  uint chunks;            // read_ceiling: vecs of 16 bytes to read, a multiple of kAhead * invocations
  uint rounds;            // flops_ceiling, matrix_ceiling: rounds of multiply-adds
HEARTH_PARAMS_END

#endif
