// Matrix products with weights in any format:
//   y[r, n] = cap(sum over k of weight[n, k] * x[r, k] + bias[n]) + residual[r, n]
#pragma once

#include <optional>
#include <span>

#include "engine/ops/kernel_choice.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

// A norm between two products that share its work, so that it needs no kernel of its own
// (params/matmul.h says how).
struct NormBetween {
  BufferSlice weight;  // [outputs of the first] f32
  BufferSlice rows;    // [rows, outputs of the first] f16: written by the first, read by the second
  // norm_state_bytes(groups). REQUIRES: it begins with the scales of an earlier norm of the same
  // rows.
  BufferSlice state;
  uint32_t groups = 0;  // workgroups of the first product
  float epsilon = 1e-5f;
};

struct Matmul {
  BufferSlice weight;                   // [outputs, inputs], device layout of shape.format
  BufferSlice x;                        // [rows, inputs] f32
  BufferSlice y;                        // [rows, outputs] f32
  std::optional<BufferSlice> bias;      // [outputs] f32
  std::optional<BufferSlice> residual;  // [rows, outputs] f32; may be y
  float soft_cap = 0;                   // 0: none
  std::optional<BufferSlice> scratch;   // plan.scratch_bytes, if not 0
  std::optional<BufferSlice> prepared;  // x in plan.form, if an earlier kernel has written it
  // plan.shared->count_bytes, zero before and after the product; without them no tile is shared.
  std::optional<BufferSlice> counts;
  // Weights, [inputs] f32, of the norm before this product, which then norms x itself. Only with
  // plan.can_norm.
  std::optional<BufferSlice> norm_weight;
  float norm_epsilon = 1e-5f;
  // Only with plan.can_share_norm, and only one of the two. With norm_before, x is in
  // `prepared`.
  std::optional<NormBetween> norm_after, norm_before;
  // The first half of the outputs gates the second: y[r, n] = act(y[r, n]) * y[r, n + half], [rows,
  // outputs / 2], f32 or, with half_results, f16. Only with plan.can_gate, and without bias,
  // residual and soft cap.
  std::optional<MlpActivation> gate;
  bool half_results = false;  // REQUIRES: plan.form is kHalves
  MatmulShape shape;
};

// Records the kernels of the plan. Fails if they do not support the shape, if scratch is missing,
// or if a kernel cannot be compiled.
Status record_matmul(CommandRecorder& recorder, PipelineStore& pipelines, const MatmulPlan& plan,
                     const Matmul& op);

// A product and the kernels chosen for it.
struct MatmulChoice {
  MatmulPlan plan;
  MatmulShape shape;
};

struct PlannedMatmul {
  MatmulPlan plan;
  Matmul op;
};

// Records products that do not depend on each other. They run concurrently as long as `scratch`,
// which replaces that of their ops, has room.
Status record_matmuls(CommandRecorder& recorder, PipelineStore& pipelines,
                      std::span<const PlannedMatmul> matmuls, const BufferSlice& scratch);

// Partial sums of split products that have yet to be added up: one matrix with the outputs of all
// products, one after the other.
struct PartsPlan {
  uint64_t offset = 0, bytes = 0;  // in the scratch memory
  uint32_t splits = 0;
  uint32_t row_stride = 0, split_stride = 0;  // floats

  bool operator==(const PartsPlan&) const = default;
};

// Where split products with the same x can leave their partial sums for the reader of the results
// to add up. Empty if not all of them are split in the same way, or if the scratch memory has no
// room for all of them. Pure.
std::optional<PartsPlan> plan_matmul_parts(std::span<const MatmulChoice> matmuls,
                                           uint64_t scratch_bytes);

// Records split products without their last kernels. Bias, residual and soft cap are left out.
// REQUIRES: `parts` is what plan_matmul_parts() returned for them and for `scratch`, which replaces
// that of their ops.
Status record_matmul_parts(CommandRecorder& recorder, PipelineStore& pipelines,
                           std::span<const PlannedMatmul> matmuls, const PartsPlan& parts,
                           const BufferSlice& scratch);

// Records only the conversion of op.x to plan.form, into `prepared`, for several products with the
// same x. REQUIRES: plan.prepare.
Status record_prepare(CommandRecorder& recorder, PipelineStore& pipelines, const MatmulPlan& plan,
                      const Matmul& op, const BufferSlice& prepared);

}  // namespace hearth
