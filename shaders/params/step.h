// A step's batch as kernels see it: one packed, ragged batch with one row per token. The rows of a
// sequence are contiguous. All of it is in device buffers, so that a recorded step can be replayed with
// another batch of the same size.
#ifndef HEARTH_PARAMS_STEP_H
#define HEARTH_PARAMS_STEP_H
#include "common/interop.h"

// A bit of a token's id: its other bits are the place where an earlier step left the id that it sampled.
HEARTH_CONSTANT(kSampledId, 0x80000000u)

HEARTH_STRUCT(StepSequence)
  uint first_row;       // its first row in the batch
  uint rows;            // its tokens in this step; 0: padding of the batch bucket, skipped
  uint first_position;  // the position of first_row: the number of its tokens already in the cache
  uint block_table;     // where its block ids begin in the array of all block tables (u32)
HEARTH_STRUCT_END

// row_sequences[row] is the sequence that owns the row, or this for a row of padding.
HEARTH_CONSTANT(kNoSequence, 0xffffffffu)

#endif
