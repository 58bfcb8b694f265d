// Gated MLP activation: y[r, i] = act(gate[r, i]) * up[r, i]
#pragma once

#include "engine/ops/cost.h"
#include "engine/ops/kernel_plan.h"
#include "engine/ops/row_form.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

enum class MlpActivation : uint8_t { kSilu, kGeluTanh };

struct MlpShape {
  uint32_t rows = 0, width = 0;
  MlpActivation activation = MlpActivation::kSilu;
  RowForm form = RowForm::kFloats;  // REQUIRES: can_write_form()
};

KernelPlan choose_mlp(const DeviceCaps& caps, const MlpShape& shape);

OpCost mlp_cost(const MlpShape& shape);

struct Mlp {
  BufferSlice gate, up;  // [rows, width] f32, rows `stride` apart
  // [rows, width] in shape.form; as floats it may be gate or up if stride is width.
  BufferSlice y;
  MlpShape shape;
  uint32_t stride = 0;  // floats; 0: width
};

// Sets gate and up to the halves of one [rows, 2 * width] matrix, as a fused projection writes
// them. REQUIRES: op.shape is set.
void use_fused_gate_up(Mlp& op, const BufferSlice& gate_up);

// Records the kernel. Fails if the stride is shorter than a row, if width is a multiple of 4 but
// the stride is not, or if the kernel cannot be compiled.
Status record_mlp(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                  const Mlp& op);

}  // namespace hearth
