// Adds up ranges of rows: y[i] = sum of x[r] over the rows r of ranges[i]. For embeddings, which
// are means of hidden states.
#pragma once

#include "engine/ops/cost.h"
#include "engine/ops/kernel_plan.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

struct PoolRowsShape {
  uint32_t ranges = 0;  // rows of the result
  uint32_t width = 0;
  uint32_t rows = 0;  // of x
};

KernelPlan choose_pool_rows(const DeviceCaps& caps, const PoolRowsShape& shape);

OpCost pool_rows_cost(const PoolRowsShape& shape);

struct PoolRows {
  BufferSlice x;       // [rows, width] f32
  BufferSlice ranges;  // [ranges] params::PoolRange; one of 0 rows leaves its row of y unchanged
  BufferSlice y;       // [ranges, width] f32; not x
  PoolRowsShape shape;
};

// Records the kernel. Fails on an empty matrix, or if the kernel cannot be compiled.
Status record_pool_rows(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                        const PoolRows& op);

}  // namespace hearth
