// Matrix products with weights in any format:
//   y[r, n] = cap(sum over k of weight[n, k] * x[r, k] + bias[n]) + residual[r, n]
#pragma once

#include <optional>

#include "engine/ops/kernel_choice.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

struct Matmul {
  BufferSlice weight;                   // [outputs, inputs], device layout of shape.format
  BufferSlice x;                        // [rows, inputs] f32
  BufferSlice y;                        // [rows, outputs] f32
  std::optional<BufferSlice> bias;      // [outputs] f32
  std::optional<BufferSlice> residual;  // [rows, outputs] f32; may be y
  float soft_cap = 0;                   // 0: none
  std::optional<BufferSlice> scratch;   // plan.scratch_bytes, where the plan needs some
  std::optional<BufferSlice> prepared;  // x in plan.form, where a kernel before has written that
  MatmulShape shape;
};

// Records the kernels of the plan. Fails if the shape is outside what they take, if scratch is
// missing, or if a kernel cannot be compiled.
Status record_matmul(CommandRecorder& recorder, PipelineStore& pipelines, const MatmulPlan& plan,
                     const Matmul& op);

// Records only what turns op.x into plan.form, into `prepared`, for several products with the same
// x. REQUIRES: plan.prepare.
Status record_prepare(CommandRecorder& recorder, PipelineStore& pipelines, const MatmulPlan& plan,
                      const Matmul& op, const BufferSlice& prepared);

}  // namespace hearth
