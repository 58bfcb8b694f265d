// The work list of the attention kernels. It is made by plan_attention()
// (engine/ops/attention_work.h) and lies in device buffers, so that a recorded step can be replayed
// with sequences of other lengths.
#ifndef HEARTH_PARAMS_ATTENTION_WORK_H
#define HEARTH_PARAMS_ATTENTION_WORK_H
#include "common/interop.h"

// A tile of neighbouring query tokens of one sequence against a range of its keys, for one KV head
// and the query heads that share it. Where the keys that a tile sees are split over several items,
// each leaves partial results, and whichever is done last puts them together.
HEARTH_STRUCT(AttentionItem)
  uint first_row;       // of the tile, in the batch
  uint first_position;  // of the tile, in its sequence
  uint tokens;          // of the tile; 0: padding of the bucket, to be skipped
  uint block_table;     // where its sequence's block ids begin in the array of all block tables
  uint key_begin;       // the range of positions; what a token must not see in it is masked
  uint key_end;
  uint splits;          // items of the tile; 1: this one sees every key there is
  uint split;           // which of them this is
  uint partial;         // where the tile's partial results begin: a slot a token, split after split
HEARTH_STRUCT_END

#endif
