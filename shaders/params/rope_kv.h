#ifndef HEARTH_PARAMS_ROPE_KV_H
#define HEARTH_PARAMS_ROPE_KV_H
#include "common/interop.h"
#include "params/paged_kv.h"
#include "params/step.h"

// This uses all 112 bytes of push constants, so everything that a model fixes is a specialization constant.
HEARTH_PARAMS(RopeKv)
  reads_address q;              // [rows] rows of [heads, head_size] f32, kQStride floats apart
  reads_address k;              // [rows] rows of [kv_heads, head_size] f32, kKStride floats apart
  reads_address v;              // like k, kVStride floats apart
  writes_address q_out;         // like q, kQOutStride floats apart
  reads_address q_norm;         // [head_size] f32, with kHeadNorms
  reads_address k_norm;         // [head_size] f32, with kHeadNorms
  reads_address table;          // f32 attention scale, 12 bytes unused, [rope_dims / 2] u64 turns
  writes_address keys;          // the cache, see paged_kv.h
  writes_address values;
  writes_address key_scales;    // with Q8_0
  writes_address value_scales;
  reads_address sequences;      // [sequences] StepSequence
  reads_address row_sequences;  // [rows] u32; in rope_kv_tree followed by the rows' ancestor masks, [rows] u32
  reads_address block_tables;   // u32
HEARTH_PARAMS_END

HEARTH_CONSTANTS(RopeKv)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kHeads, 1)
  HEARTH_UINT(2, kKvHeads, 1)
  HEARTH_UINT(3, kHeadSize, 64)
  HEARTH_UINT(4, kRopeDims, 64)
  HEARTH_UINT(5, kAdjacent, 0)
  HEARTH_UINT(6, kHeadNorms, 0)
  HEARTH_UINT(7, kLaneQuads, 1)  // quads per lane; Q8_0: at least 8 / subgroup size
  // q, k and v may be the partial sums of a split-k matmul, to be added here: kPartials of them,
  // kPartialQuads quads apart.
  HEARTH_UINT(8, kPartials, 1)
  HEARTH_UINT(9, kPartialQuads, 0)
  HEARTH_OPTIONAL_FROM(10)
  HEARTH_UINT(10, kQStride, 0)       // floats from row to row
  HEARTH_UINT(11, kKStride, 0)
  HEARTH_UINT(12, kVStride, 0)
  HEARTH_UINT(13, kQOutStride, 0)
  HEARTH_FLOAT(14, kEpsilon, 1e-6f)  // of the head norms
HEARTH_CONSTANTS_END

#endif
