// The work list of the attention kernels. It is made by plan_attention()
// (engine/ops/attention_work.h) and lies in device buffers, so that a recorded step can be replayed
// with sequences of other lengths.
#ifndef HEARTH_PARAMS_ATTENTION_WORK_H
#define HEARTH_PARAMS_ATTENTION_WORK_H
#include "common/interop.h"

// A tile of neighbouring query tokens of one sequence against a range of its keys, for one KV head
// and the query heads that share it.
HEARTH_STRUCT(AttentionItem)
  uint sequence;     // index of its StepSequence
  uint first_token;  // of the tile, counted from the sequence's first row in this step
  uint tokens;       // of the tile; 0: padding of the bucket, to be skipped
  uint key_begin;    // the range of positions; what a token must not see in it is masked
  uint key_end;
  uint partial;      // where its partial results begin, a slot a token; kNoPartial: it sees every
                     // key there is, and writes the result itself
HEARTH_STRUCT_END
HEARTH_CONSTANT(kNoPartial, 0xffffffffu)

// A token whose keys were split over several items.
HEARTH_STRUCT(AttentionMerge)
  uint row;      // in the batch
  uint partial;  // the slot of its first split
  uint stride;   // slots from one split to the next
  uint splits;   // 0: padding of the bucket, to be skipped
HEARTH_STRUCT_END

#endif
