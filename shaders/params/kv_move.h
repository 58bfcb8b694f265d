#ifndef HEARTH_PARAMS_KV_MOVE_H
#define HEARTH_PARAMS_KV_MOVE_H
#include "common/interop.h"
#include "params/paged_kv.h"

// The keys, values or scales of one layer: [blocks, kv_heads, kBlockTokens] rows.
HEARTH_STRUCT(KvPlane)
  address rows;
  uint row_bytes;  // a multiple of 2
  uint unused;
HEARTH_STRUCT_END

// Moves of one sequence, in this order: pairs of words, each a place in the pool, block * kBlockTokens +
// slot. The first is copied to the second.
HEARTH_STRUCT(KvMoveList)
  uint first;  // where the pairs begin in the step's words
  uint count;  // 0: padding
HEARTH_STRUCT_END

HEARTH_PARAMS(KvMove)
  address planes;  // [planes] KvPlane
  address lists;   // [lists] KvMoveList
  address words;   // u32
  uint kv_heads;
HEARTH_PARAMS_END

#endif
