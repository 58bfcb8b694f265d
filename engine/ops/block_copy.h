// Copies KV blocks in all planes (keys, values, scales of any number of layers) at once: within the
// pool for a fork, or to and from host memory for a swap.
#pragma once

#include "engine/ops/cost.h"
#include "engine/ops/kernel_plan.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

struct BlockCopyShape {
  uint32_t pairs = 0;        // capacity of the list
  uint32_t planes = 0;       // arrays of blocks: keys, values and scales of every layer
  uint32_t block_bytes = 0;  // largest block of any plane; a multiple of 16
};

KernelPlan choose_block_copy(const DeviceCaps& caps, const BlockCopyShape& shape);

OpCost block_copy_cost(const BlockCopyShape& shape);

struct BlockCopy {
  // The allocations that contain the sources and targets. A pool with several allocations needs one
  // BlockCopy for each.
  BufferSlice from, to;
  BufferSlice planes;  // [planes] params::CopyPlane, with addresses inside from and to
  BufferSlice pairs;   // [pairs] params::CopyPair; from = params::kNoBlock: unused
  BlockCopyShape shape;
};

// Records the kernel. Fails if block_bytes is not a multiple of 16, or the kernel cannot be
// compiled. REQUIRES: when it runs, no block is the target of one pair and part of another.
Status record_block_copy(CommandRecorder& recorder, PipelineStore& pipelines,
                         const KernelPlan& plan, const BlockCopy& op);

}  // namespace hearth
