// Copies blocks of the KV cache in every plane (keys, values, scales, of any number of layers) at
// once: a fork within the pool, a swap out to host memory, a swap in from there.
#pragma once

#include "engine/ops/kernel_choice.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

struct BlockCopy {
  // The memory that the planes' sources and targets lie in. A pool spread over several allocations
  // takes a BlockCopy for each.
  BufferSlice from, to;
  BufferSlice planes;  // [planes] params::CopyPlane, with addresses inside from and to
  BufferSlice pairs;   // [pairs] params::CopyPair; from = params::kNoBlock: unused
  BlockCopyShape shape;
};

// Records the kernel. Fails if block_bytes is no multiple of 16, or the kernel cannot be compiled.
// REQUIRES: at the time it runs, no block is the target of one pair and part of another.
Status record_block_copy(CommandRecorder& recorder, PipelineStore& pipelines,
                         const KernelPlan& plan, const BlockCopy& op);

}  // namespace hearth
