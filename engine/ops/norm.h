// RMS norm: y[r, i] = x[r, i] / sqrt(mean of x[r]^2 + epsilon) * weight[i]
#pragma once

#include "engine/ops/kernel_choice.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

struct RmsNorm {
  BufferSlice x;       // [rows, width] f32
  BufferSlice weight;  // [width] f32
  BufferSlice y;       // [rows, width] f32; may be x
  RmsNormShape shape;
  float epsilon = 1e-5f;
};

// Records the kernel. Fails only if the kernel cannot be compiled.
Status record_rms_norm(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                       const RmsNorm& op);

}  // namespace hearth
