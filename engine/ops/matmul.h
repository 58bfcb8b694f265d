// Matrix products with weights in any format:
//   y[r, n] = cap(sum over k of weight[n, k] * x[r, k] + bias[n]) + residual[r, n]
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/ops/cost.h"
#include "engine/ops/kernel_plan.h"
#include "engine/ops/mlp.h"
#include "engine/ops/row_form.h"
#include "engine/weights/formats.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

struct MatmulShape {
  WeightFormat format = WeightFormat::kF16;
  uint32_t rows = 0;    // of x
  uint32_t inputs = 0;  // a multiple of the format's block, or of kFloatInputUnit
  uint32_t outputs = 0;
  uint32_t sibling_outputs = 0;  // of products with the same x that run at the same time
};
inline constexpr uint32_t kFloatInputUnit = 8;
inline constexpr uint32_t kMaxMatvecRows = 8;  // of a matrix-vector kernel

// The fragment that matmuls use, with f16 operands and f32 sums: the largest one of the device that
// divides our tiles.
std::optional<CoopmatShape> coopmat_shape(const DeviceCaps& caps);

// The partial sums of a split product: [splits, rows, outputs] f32, with rows rounded up to whole
// tiles and outputs to kPartUnit, a multiple of all fragment widths.
struct PartLayout {
  uint32_t splits = 0, rows = 0, outputs = 0;
};
inline constexpr uint32_t kPartUnit = 16;

// A product whose last tiles are computed by several workgroups each (split-k), so that the last
// wave keeps the whole device busy, too. The last workgroup of a tile to finish, recognized by a
// counter, adds up the partial sums.
struct SharedTiles {
  KernelPlan multiply;
  uint32_t whole_tiles = 0;  // tiles that are not shared
  uint64_t count_bytes = 0;
};

// A product whose last wave would leave much of the device idle: the outputs that full waves do not
// cover are computed in one wave of smaller tiles.
struct RestTiles {
  KernelPlan multiply;
  uint32_t first_output = 0;
};

struct MatmulPlan {
  RowForm form = RowForm::kFloats;    // of x, for `multiply`
  std::optional<KernelPlan> prepare;  // converts x to that form, in scratch memory
  KernelPlan multiply;
  std::optional<RestTiles> rest;      // runs in addition to it
  std::optional<SharedTiles> shared;  // replaces it; never with siblings
  std::optional<KernelPlan> reduce;   // finally adds up partial sums from scratch memory
  uint64_t prepared_bytes = 0;        // scratch memory for x
  uint64_t part_bytes = 0;            // then, for partial sums

  uint64_t scratch_bytes = 0;  // both together

  PartLayout parts = {};  // if there is a reduce
  // What else `multiply` can do (params/matmul.h): norm its row first, combine gate and up of an
  // MLP, and begin the norm after the product or finish the one before it.
  bool can_norm = false, can_gate = false, can_share_norm = false;
};

// Memory that two products use for a norm between them, if the first has `groups` workgroups.
uint64_t norm_state_bytes(uint32_t groups);

// `deterministic`: the kernel does not depend on the number of rows, so a row's result is the same,
// to the last bit, alone and in a batch.
MatmulPlan choose_matmul(const DeviceCaps& caps, const MatmulShape& shape,
                         bool deterministic = false);

// The weights once, and the rows of x and y as floats.
OpCost matmul_cost(const MatmulShape& shape);
// Bytes of a matrix in the device layout of its format.
uint64_t matrix_bytes(WeightFormat format, uint64_t outputs, uint64_t inputs);

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
  // plan.shared->count_bytes, if tiles are shared; zero before and after the product.
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

// Products that do not depend on each other run side by side as long as there is scratch memory:
// how many of them in the first turn, in the next, and so on. Pure.
std::vector<size_t> plan_matmul_turns(std::span<const MatmulChoice> matmuls,
                                      uint64_t scratch_bytes);

// Records products turn by turn. `scratch` replaces that of their ops. REQUIRES: `turns` is what
// plan_matmul_turns() returned for them and for `scratch`.
Status record_matmuls(CommandRecorder& recorder, PipelineStore& pipelines,
                      std::span<const PlannedMatmul> matmuls, std::span<const size_t> turns,
                      const BufferSlice& scratch);

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
