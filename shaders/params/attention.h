#include "common/interop.h"

HEARTH_PARAMS(Attention)
  address q;              // [rows, heads, head_size] f32
  address result;         // [rows, heads, head_size] in the form kForm says
  address keys;           // the cache, see paged_kv.h
  address values;
  address key_scales;     // only Q8_0
  address value_scales;
  address sequences;      // StepSequence
  address block_tables;   // u32
  address items;          // AttentionItem, one a workgroup in x
  address partial_sums;   // [slots, heads, head_size] f32: sum of 2^(score - max) * value
  address partial_stats;  // [slots, heads] max, sum of 2^(score - max)
  uint rows;
  uint heads;
  uint kv_heads;
  uint window;            // a row at p sees keys above p - window; 0: every key up to p
  float scale;
  float soft_cap;         // score = soft_cap * tanh(score / soft_cap); 0: none
HEARTH_PARAMS_END
