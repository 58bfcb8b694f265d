#ifndef HEARTH_PARAMS_ROPE_KV_H
#define HEARTH_PARAMS_ROPE_KV_H
#include "common/interop.h"
#include "params/paged_kv.h"
#include "params/step.h"

// This uses all 112 bytes of push constants, so everything that a model fixes is a specialization constant.
HEARTH_PARAMS(RopeKv)
  address q;              // [rows] rows of [heads, head_size] f32, kQStride floats apart
  address k;              // [rows] rows of [kv_heads, head_size] f32, kKStride floats apart
  address v;              // like k, kVStride floats apart
  address q_out;          // like q, kQOutStride floats apart
  address q_norm;         // [head_size] f32, with kHeadNorms
  address k_norm;         // [head_size] f32, with kHeadNorms
  address table;          // f32 attention scale, 12 bytes unused, [rope_dims / 2] u64 turns
  address keys;           // the cache, see paged_kv.h
  address values;
  address key_scales;     // with Q8_0
  address value_scales;
  address sequences;      // [sequences] StepSequence
  address row_sequences;  // [rows] u32; in rope_kv_tree followed by the rows' ancestor masks, [rows] u32
  address block_tables;   // u32
HEARTH_PARAMS_END

#endif
