// The paged KV cache. A block holds kTokensPerBlock positions of one layer, for every KV head. Keys and
// values are two arrays of the same shape:
//
//   F16    [blocks, kv_heads, kTokensPerBlock, head_size] f16
//   Q8_0   [blocks, kv_heads, kTokensPerBlock, head_size] signed bytes, and an array of scales
//          [blocks, kv_heads, kTokensPerBlock, ceil(head_size / kScaleWeights)] f16
//
// Position p of a sequence is at slot p % kTokensPerBlock of block block_tables[block_table + p /
// kTokensPerBlock]. A "KV row" is head_size elements: row ((block * kv_heads) + head) * kTokensPerBlock +
// slot. Row counts fit in 32 bits, byte offsets do not.
#ifndef HEARTH_PARAMS_PAGED_KV_H
#define HEARTH_PARAMS_PAGED_KV_H
#include "common/interop.h"

HEARTH_CONSTANT(kTokensPerBlock, 16u)
// In a block table: another rank has the block (engine/ranks), and nothing is written to it here.
HEARTH_CONSTANT(kElsewhere, 0xffffffffu)
HEARTH_CONSTANT(kScaleWeights, 32u)  // elements of a scale group: those that share a scale in a Q8_0 cache

#endif
