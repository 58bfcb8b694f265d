#ifndef HEARTH_PARAMS_ATTENTION_H
#define HEARTH_PARAMS_ATTENTION_H
#include "common/interop.h"

// With DEALT, for ranks that have some of the keys each, the result is sums for the ranks to merge: every
// row and head has its sum of 2^(score - max) * value, [head_size] f32, and then kAttentionStats more: max,
// sum of 2^(score - max), two unused. A row without keys here is not written.
HEARTH_CONSTANT(kAttentionStats, 4u)

// This uses all 112 bytes of push constants, so everything that a model fixes is a specialization constant.
HEARTH_PARAMS(Attention)
  reads_address q;             // [rows, heads, head_size] f32; with kFuseRope as the projection left it
  writes_address result;       // [rows, heads, head_size] in the form kForm says
  updates_address keys;        // the cache, see paged_kv.h
  updates_address values;
  updates_address key_scales;  // only Q8_0
  updates_address value_scales;
  reads_address block_tables;  // u32
  reads_address items;         // AttentionItem, one per workgroup in x
  updates_address counts;      // [rows, heads] u32, zero: finished splits of each tile
  reads_address table;         // with kFuseRope: as in rope_kv.h; with TREE_ROWS: [rows] u32, ancestor masks
  reads_address q_norm;        // with SINKS instead: [heads] f32, a logit of each head's softmax without a value
  reads_address k_norm;
  uint partials;               // where the splits' partial results begin, in bytes from `counts`:
                               // [token slots, heads] of head_size f32, the sum of 2^(score - max) * value,
                               // and four more: max, sum of 2^(score - max), two unused
  uint part_rows;              // with kFuseRope: rows from one partial sum, or matrix, of q, k and v to the next
  uint window;                 // a row at p sees keys above p - window; 0: every key up to p
  float soft_cap;              // score = soft_cap * tanh(score / soft_cap); 0: none
  HEARTH_FINDS_TO_READ(k)      // with kFuseRope, by their distance from q
  HEARTH_FINDS_TO_READ(v)
  HEARTH_FINDS_TO_WRITE(partial_results)
HEARTH_PARAMS_END

#endif
