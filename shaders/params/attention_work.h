// The work list of the attention kernels. plan_attention() (engine/ops/attention_work.h) makes it. It is
// in device buffers, so that a recorded step can be replayed with sequences of other lengths.
#ifndef HEARTH_PARAMS_ATTENTION_WORK_H
#define HEARTH_PARAMS_ATTENTION_WORK_H
#include "common/interop.h"

// In AttentionItem::partial, if ranks share the blocks: another rank counts the sinks of the tile's rows.
HEARTH_CONSTANT(kSinksElsewhere, 0x80000000u)

// A tile of neighbouring query tokens of one sequence against a range of its keys, for one KV head
// and the query heads that share it. If a tile's keys are split over several items, each writes partial
// results, and the last one to finish merges them.
HEARTH_STRUCT(AttentionItem)
  uint first_row;       // of the tile, in the batch
  uint first_position;  // of the tile, in its sequence
  uint tokens;          // of the tile; 0: padding of the batch bucket, skipped
  uint block_table;     // where its sequence's block ids begin in the array of all block tables
  uint key_begin;       // the range of key positions; keys that a token must not see are masked
  uint key_end;
  uint splits;          // number of items of the tile; 1: this one has all keys
  uint split;           // index among them
  uint partial;         // the tile's first token slot in the partial results: [splits, tokens]
HEARTH_STRUCT_END

#endif
