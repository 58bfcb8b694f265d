// Matrix times a few vectors: y[r, n] = sum over k of weight[n, k] * x[r, k]
#pragma once

#include "engine/ops/kernel_choice.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

struct Matvec {
  BufferSlice weight;  // [outputs, inputs] f16
  BufferSlice x;       // [rows, inputs] f32
  BufferSlice y;       // [rows, outputs] f32
  MatvecShape shape;
};

// Records the kernel. Fails if the shape is outside what the kernels take (see MatvecShape), or if
// the kernel cannot be compiled.
Status record_matvec(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                     const Matvec& op);

}  // namespace hearth
