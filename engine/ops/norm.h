// RMS norm, alone or after adding a residual:
//   x[r, i] += sum over s < shape.residuals of residual[s, r, i]
//   y[r, i] = x[r, i] / sqrt(mean of x[r]^2 + epsilon) * weight[i]
#pragma once

#include <optional>

#include "engine/ops/cost.h"
#include "engine/ops/kernel_plan.h"
#include "engine/ops/row_form.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

struct RmsNormShape {
  uint32_t rows = 0, width = 0;
  uint32_t residuals = 0;           // added to x first: 0, 1, or the number of splits of a product
  RowForm form = RowForm::kFloats;  // REQUIRES: can_write_form()
};

// `deterministic`: a row's result does not depend on the other rows.
KernelPlan choose_rms_norm(const DeviceCaps& caps, const RmsNormShape& shape,
                           bool deterministic = false);

OpCost rms_norm_cost(const RmsNormShape& shape);

struct RmsNorm {
  BufferSlice x;       // [rows, width] f32; also written if there are residuals
  BufferSlice weight;  // [width] f32
  BufferSlice y;       // [rows, width] in shape.form; as floats it may be x or the residual
  RmsNormShape shape;
  float epsilon = 1e-5f;
  BufferSlice residual = {};     // [residuals, rows, width] f32; only if there are any
  uint32_t residual_stride = 0;  // floats from row to row; 0: width
  uint32_t partial_stride = 0;   // floats from one residual to the next
  // [rows] f32: if set, receives the factor of each row, without the weight.
  std::optional<BufferSlice> scales = {};
};

// Records the kernel. Fails if a residual is to be added to an x that is also y, or if the kernel
// cannot be compiled.
Status record_rms_norm(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                       const RmsNorm& op);

}  // namespace hearth
