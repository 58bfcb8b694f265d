// Gated MLP activation: y[r, i] = act(gate[r, i]) * up[r, i]
#pragma once

#include "engine/ops/kernel_choice.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

struct Mlp {
  BufferSlice gate, up;  // [rows, width] f32, rows `stride` apart
  // [rows, width] in shape.form; floats may be gate or up where stride is width.
  BufferSlice y;
  MlpShape shape;
  uint32_t stride = 0;  // floats; 0: width
};

// gate and up as one [rows, 2 * width] matrix, gate first, as a fused projection leaves them.
// REQUIRES: op.shape is set.
void use_fused_gate_up(Mlp& op, const BufferSlice& gate_up);

// Records the kernel. Fails if the stride is shorter than a row or, where width is a multiple of 4,
// not one too, or if the kernel cannot be compiled.
Status record_mlp(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                  const Mlp& op);

}  // namespace hearth
