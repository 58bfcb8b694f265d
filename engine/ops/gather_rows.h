// Gathers rows: y[r] = x[indices[r]], so that logits are computed only for these.
#pragma once

#include "engine/ops/cost.h"
#include "engine/ops/kernel_plan.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

struct GatherRowsShape {
  uint32_t rows = 0;  // of the result
  uint32_t width = 0;
  uint32_t source_rows = 0;
};

KernelPlan choose_gather_rows(const DeviceCaps& caps, const GatherRowsShape& shape);

OpCost gather_rows_cost(const GatherRowsShape& shape);

struct GatherRows {
  BufferSlice x;        // [source_rows, width] f32
  BufferSlice indices;  // [rows] u32; params::kNoSequence leaves that row of y unchanged
  BufferSlice y;        // [rows, width] f32; not x
  GatherRowsShape shape;
};

// Records the kernel. Fails on an empty width, or if the kernel cannot be compiled.
Status record_gather_rows(CommandRecorder& recorder, PipelineStore& pipelines,
                          const KernelPlan& plan, const GatherRows& op);

}  // namespace hearth
