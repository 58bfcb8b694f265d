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

// A norm between two products that both have a part in it, so that it needs no kernel of its own
// (params/matmul.h says how).
struct NormBetween {
  BufferSlice weight;  // [outputs of the first] f32
  BufferSlice rows;  // [rows, outputs of the first] f16: what the first leaves and the second reads
  // norm_state_bytes(groups). REQUIRES: it begins with the scales of a norm of the same rows
  // before.
  BufferSlice state;
  uint32_t groups = 0;  // of the first product
  float epsilon = 1e-5f;
};

struct Matmul {
  BufferSlice weight;                   // [outputs, inputs], device layout of shape.format
  BufferSlice x;                        // [rows, inputs] f32
  BufferSlice y;                        // [rows, outputs] f32
  std::optional<BufferSlice> bias;      // [outputs] f32
  std::optional<BufferSlice> residual;  // [rows, outputs] f32; may be y
  float soft_cap = 0;                   // 0: none
  std::optional<BufferSlice> scratch;   // plan.scratch_bytes, where the plan needs some
  std::optional<BufferSlice> prepared;  // x in plan.form, where a kernel before has written that
  // plan.shared->count_bytes, zero before the product and after it; without them no tile is shared.
  std::optional<BufferSlice> counts;
  // The norm before this product, of which these are the weights, [inputs] f32: x is normed on the
  // way. Only with plan.norm_constant.
  std::optional<BufferSlice> norm_weight;
  float norm_epsilon = 1e-5f;
  // Only with plan.norm_part_constant, and of the two only one. x, where there is a norm before, is
  // given by `prepared`.
  std::optional<NormBetween> norm_after, norm_before;
  // The first half of the outputs are gates of the second: y[r, n] = act(y[r, n]) * y[r, n + half],
  // [rows, outputs / 2], f32 or, with half_results, f16. Only with plan.gate_constant, and without
  // bias, residual and soft cap.
  std::optional<MlpActivation> gate;
  bool half_results = false;  // REQUIRES: plan.form is kHalves
  MatmulShape shape;
};

// Records the kernels of the plan. Fails if the shape is outside what they take, if scratch is
// missing, or if a kernel cannot be compiled.
Status record_matmul(CommandRecorder& recorder, PipelineStore& pipelines, const MatmulPlan& plan,
                     const Matmul& op);

struct PlannedMatmul {
  MatmulPlan plan;
  Matmul op;
};

// Products that do not depend on each other: they run side by side as long as `scratch`, which
// takes the place of their ops', has room for the next one's.
Status record_matmuls(CommandRecorder& recorder, PipelineStore& pipelines,
                      std::span<const PlannedMatmul> matmuls, const BufferSlice& scratch);

// Sums of split products that are still to be added up: one matrix, in which the outputs of each
// product come after those of the one before.
struct MatmulParts {
  BufferSlice slice;  // in the scratch
  uint32_t splits = 0;
  uint32_t row_stride = 0, split_stride = 0;  // floats
};

// Records all but the last kernels of products with the same x, and leaves the work of those to
// whoever reads the results: what comes after the sums (bias, residual, soft cap) is left out.
// Null, and nothing recorded, where not all are split, and in the same way, or where `scratch`,
// which takes the place of their ops', has no room for them side by side.
Result<std::optional<MatmulParts>> record_matmul_parts(CommandRecorder& recorder,
                                                       PipelineStore& pipelines,
                                                       std::span<const PlannedMatmul> matmuls,
                                                       const BufferSlice& scratch);

// Records only what turns op.x into plan.form, into `prepared`, for several products with the same
// x. REQUIRES: plan.prepare.
Status record_prepare(CommandRecorder& recorder, PipelineStore& pipelines, const MatmulPlan& plan,
                      const Matmul& op, const BufferSlice& prepared);

}  // namespace hearth
