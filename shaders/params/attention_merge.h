#include "common/interop.h"

HEARTH_PARAMS(MergeAttention)
  address result;         // [rows, heads, head_size] in the form kForm says
  address merges;         // AttentionMerge
  address partial_sums;   // as in Attention
  address partial_stats;
  uint rows;
  uint heads;
  uint head_size;         // a multiple of 4
HEARTH_PARAMS_END
