#include "engine/ops/matmul.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "params/half_rows.h"
#include "params/matmul.h"

namespace hearth {
namespace {

constexpr uint64_t kScratchUnit = 16;  // where the scratch memory of a product begins

uint32_t epilogue(const Matmul& op) {
  return (op.bias ? params::kEpilogueBias : 0) | (op.soft_cap != 0 ? params::kEpilogueSoftCap : 0) |
         (op.residual ? params::kEpilogueResidual : 0);
}

// The norm that a product shares, after it or before it.
const std::optional<NormBetween>& shared_norm(const Matmul& op) {
  return op.norm_after ? op.norm_after : op.norm_before;
}

Status check(const MatmulPlan& plan, const Matmul& op) {
  const MatmulShape& shape = op.shape;
  const FormatInfo& format = format_info(shape.format);
  const uint32_t unit = format.is_float() ? kFloatInputUnit : format.block_weights;
  if (shape.rows == 0 || shape.outputs == 0 || shape.inputs == 0 || shape.inputs % unit != 0)
    return Error{ErrorKind::kInvalid,
                 fmt::format("no kernel for a product of {} x {} {} weights with {} rows: inputs "
                             "come in multiples of {}",
                             shape.outputs, shape.inputs, format.name, shape.rows, unit)};
  if (const auto& norm = shared_norm(op);
      norm && (!plan.can_share_norm || norm->state.bytes < norm_state_bytes(norm->groups) ||
               (op.norm_after && (op.norm_before || op.gate)) || (op.norm_before && !op.prepared)))
    return Error{ErrorKind::kInvalid, "this product cannot have a part in a norm"};
  if ((op.norm_weight && !plan.can_norm) || (op.gate && !plan.can_gate) ||
      (op.gate && (epilogue(op) != 0 || shape.outputs % 8 != 0)))
    return Error{ErrorKind::kInvalid, "this product cannot norm, or join gates and ups"};
  if (plan.scratch_bytes > 0 && (!op.scratch || op.scratch->bytes < plan.scratch_bytes))
    return Error{ErrorKind::kInvalid,
                 fmt::format("this product needs {} bytes of scratch", plan.scratch_bytes)};
  if (plan.shared && (!op.counts || op.counts->bytes < plan.shared->count_bytes))
    return Error{ErrorKind::kInvalid,
                 fmt::format("this product needs {} bytes of counters", plan.shared->count_bytes)};
  return {};
}

// One kernel of a plan, with its input and output.
struct Stage {
  const KernelPlan& kernel;
  BufferSlice x;
  Access written;
  uint32_t partial_stride = 0;
  uint32_t first_output = 0;
  bool last = true;  // also does what comes after the sums
};

// Dispatches it, with the op's other arguments.
Status dispatch(CommandRecorder& recorder, PipelineStore& pipelines, const MatmulPlan& plan,
                const Matmul& op, const Stage& stage) {
  const auto& [kernel, x, written, partial_stride, first_output, last] = stage;
  const BufferSlice& y = written.slice;
  PipelineInfo info = kernel.pipeline;
  info.constants.set("kEpilogue", last ? epilogue(op) : 0);
  if (op.norm_weight) info.constants.set("kNorm", 1u);
  if (op.gate) {
    info.constants.set("kGate",
                       *op.gate == MlpActivation::kSilu ? params::kGateSilu : params::kGateGelu);
    if (op.half_results) info.constants.set("kHalfResults", 1u);
  }
  const std::optional<NormBetween>& norm = shared_norm(op);
  if (norm) {
    info.constants.set("kNorm", op.norm_after ? params::kNormStarts : params::kNormFinishes);
    info.constants.set("kNormWorkgroups", norm->groups);
  }
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(info));
  // Shared tiles use the scratch memory for partial sums.
  const bool shared = plan.shared.has_value();
  const BufferSlice parts = shared ? op.scratch->slice(plan.prepared_bytes, plan.part_bytes) : y;
  const BufferSlice norm_weight = norm ? norm->weight : op.norm_weight.value_or(op.weight);
  Access norm_state;
  if (norm) norm_state = op.norm_after ? reads_writes(norm->state) : reads(norm->state);
  const params::Matmul params{.weight = op.weight,
                              .x = x,
                              .y = written,
                              .bias = op.bias,
                              .residual = op.residual,
                              .norm_weight = norm_weight,
                              .counts = shared ? op.counts : std::nullopt,
                              .tail_partials = shared ? std::optional(parts) : std::nullopt,
                              .norm_state = norm_state,
                              .prescaled = op.norm_after ? std::optional(norm->rows) : std::nullopt,
                              .rows = op.shape.rows,
                              .inputs = op.shape.inputs,
                              .outputs = op.shape.outputs,
                              .soft_cap = op.soft_cap,
                              .epsilon = norm ? norm->epsilon : op.norm_epsilon,
                              .whole_tiles = shared ? plan.shared->whole_tiles : 0,
                              .partial_stride = partial_stride,
                              .first_output = first_output};
  recorder.dispatch({.pipeline = *pipeline, .arguments = params, .groups = kernel.groups});
  return {};
}

}  // namespace

uint64_t matrix_bytes(WeightFormat format, uint64_t outputs, uint64_t inputs) {
  return device_layout(format, outputs * inputs / format_info(format).block_weights).total_bytes;
}

OpCost matmul_cost(const MatmulShape& shape) {
  const double inputs = shape.inputs, outputs = shape.outputs;
  return {
      .memory_bytes = static_cast<double>(matrix_bytes(shape.format, shape.outputs, shape.inputs)),
      .activation_bytes = 4 * shape.rows * (inputs + outputs),
      .operations = 2 * shape.rows * inputs * outputs};
}

Status record_prepare(CommandRecorder& recorder, PipelineStore& pipelines, const MatmulPlan& plan,
                      const Matmul& op, const BufferSlice& prepared) {
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(plan.prepare->pipeline));
  recorder.dispatch(
      {.pipeline = *pipeline,
       .arguments = params::HalfRows{.x = op.x, .y = prepared, .width = op.shape.inputs},
       .groups = plan.prepare->groups});
  return {};
}

namespace {

// x in the form that the plan's kernel reads.
Result<BufferSlice> prepared_rows(CommandRecorder& recorder, PipelineStore& pipelines,
                                  const MatmulPlan& plan, const Matmul& op) {
  if (!plan.prepare) return op.x;
  if (op.prepared) return *op.prepared;
  const BufferSlice x = op.scratch->slice(0, plan.prepared_bytes);
  HEARTH_TRY(record_prepare(recorder, pipelines, plan, op, x));
  return x;
}

}  // namespace

namespace {

// One matrix of partial sums with rows of `row_stride` floats, `offset` bytes into scratch.
PartsPlan place_parts(const PartLayout& layout, uint32_t row_stride, uint64_t offset) {
  PartsPlan parts{.offset = offset,
                  .splits = layout.splits,
                  .row_stride = row_stride,
                  .split_stride = layout.rows * row_stride};
  parts.bytes = uint64_t{parts.splits} * parts.split_stride * 4;
  return parts;
}

bool split_alike(std::span<const MatmulChoice> matmuls) {
  const PartLayout& first = matmuls.front().plan.parts;
  return std::ranges::all_of(matmuls, [&](const MatmulChoice& matmul) {
    const auto& [plan, shape] = matmul;
    return plan.reduce && plan.parts.splits == first.splits && plan.parts.rows == first.rows &&
           (matmuls.size() == 1 || plan.parts.outputs == shape.outputs);
  });
}

}  // namespace

std::optional<PartsPlan> plan_matmul_parts(std::span<const MatmulChoice> matmuls,
                                           uint64_t scratch_bytes) {
  if (!split_alike(matmuls)) return std::nullopt;
  uint64_t prepared = 0, needed = 0;  // of scratch: for x, and for all
  uint32_t row_stride = 0;
  for (const MatmulChoice& matmul : matmuls) {
    prepared += matmul.plan.prepared_bytes;
    needed += matmul.plan.scratch_bytes;
    row_stride += matmul.plan.parts.outputs;
  }
  if (needed > scratch_bytes) return std::nullopt;
  return place_parts(matmuls.front().plan.parts, row_stride, prepared);
}

Status record_matmul_parts(CommandRecorder& recorder, PipelineStore& pipelines,
                           std::span<const PlannedMatmul> matmuls, const PartsPlan& parts,
                           const BufferSlice& scratch) {
  const BufferSlice sums = scratch.slice(parts.offset, parts.bytes);
  uint64_t used = 0, column = 0;
  for (const auto& [plan, op] : matmuls) {
    Matmul placed = op;
    placed.scratch = scratch.slice(used, scratch.bytes - used);
    HEARTH_TRY(check(plan, placed));
    HEARTH_ASSIGN(const BufferSlice x, prepared_rows(recorder, pipelines, plan, placed));
    const BufferSlice y = sums.slice(column * 4, sums.bytes - column * 4);
    HEARTH_TRY(dispatch(recorder, pipelines, plan, placed,
                        {.kernel = plan.multiply,
                         .x = x,
                         .written = column == 0 ? writes(y) : writes_disjoint(y),
                         .partial_stride = parts.row_stride,
                         .last = false}));
    used += plan.prepared_bytes;
    column += plan.parts.outputs;
  }
  return {};
}

namespace {

// Everything except adding up partial sums; returns where they are, if there are any.
Result<std::optional<PartsPlan>> record_product(CommandRecorder& recorder, PipelineStore& pipelines,
                                                const MatmulPlan& plan, const Matmul& op) {
  std::optional<PartsPlan> parts;
  HEARTH_TRY(check(plan, op));
  if (plan.reduce) {
    const PlannedMatmul one[] = {{plan, op}};
    parts = place_parts(plan.parts, plan.parts.outputs, plan.prepared_bytes);
    HEARTH_TRY(record_matmul_parts(recorder, pipelines, one, *parts, *op.scratch));
    return parts;
  }
  HEARTH_ASSIGN(const BufferSlice x, prepared_rows(recorder, pipelines, plan, op));
  const KernelPlan& multiply = plan.shared ? plan.shared->multiply : plan.multiply;
  HEARTH_TRY(dispatch(recorder, pipelines, plan, op,
                      {.kernel = multiply, .x = x, .written = writes(op.y)}));
  if (plan.rest)
    HEARTH_TRY(dispatch(recorder, pipelines, plan, op,
                        {.kernel = plan.rest->multiply,
                         .x = x,
                         .written = writes_disjoint(op.y),
                         .first_output = plan.rest->first_output}));
  return parts;
}

Status record_sum(CommandRecorder& recorder, PipelineStore& pipelines, const MatmulPlan& plan,
                  const Matmul& op, const PartsPlan& parts) {
  return dispatch(recorder, pipelines, plan, op,
                  {.kernel = *plan.reduce,
                   .x = op.scratch->slice(parts.offset, parts.bytes),
                   .written = writes(op.y),
                   .partial_stride = parts.row_stride});
}

}  // namespace

Status record_matmul(CommandRecorder& recorder, PipelineStore& pipelines, const MatmulPlan& plan,
                     const Matmul& op) {
  HEARTH_ASSIGN(const auto parts, record_product(recorder, pipelines, plan, op));
  return parts ? record_sum(recorder, pipelines, plan, op, *parts) : Status{};
}

std::vector<size_t> plan_matmul_turns(std::span<const MatmulChoice> matmuls,
                                      uint64_t scratch_bytes) {
  std::vector<size_t> turns;
  uint64_t used = 0;
  for (const MatmulChoice& matmul : matmuls) {
    if (turns.empty() || used + matmul.plan.scratch_bytes > scratch_bytes) {
      turns.push_back(0);
      used = 0;
    }
    ++turns.back();
    used += round_up(matmul.plan.scratch_bytes, kScratchUnit);
  }
  return turns;
}

namespace {

// The products of a turn, then the kernels that add up their partial sums.
Status record_turn(CommandRecorder& recorder, PipelineStore& pipelines,
                   std::span<const PlannedMatmul> matmuls, const BufferSlice& scratch) {
  struct Started {
    Matmul op;
    std::optional<PartsPlan> parts;
  };
  std::vector<Started> started;
  uint64_t used = 0;
  for (const auto& [plan, op] : matmuls) {
    if (matmuls.size() > 1 && plan.shared)
      return Error{ErrorKind::kInvalid, "products that run side by side would share counters"};
    Matmul placed = op;
    placed.scratch = scratch.slice(used, plan.scratch_bytes);
    HEARTH_ASSIGN(const auto parts, record_product(recorder, pipelines, plan, placed));
    started.push_back({placed, parts});
    used += round_up(plan.scratch_bytes, kScratchUnit);
  }
  for (size_t i = 0; i < started.size(); ++i) {
    const auto& [op, parts] = started[i];
    if (parts) HEARTH_TRY(record_sum(recorder, pipelines, matmuls[i].plan, op, *parts));
  }
  return {};
}

}  // namespace

Status record_matmuls(CommandRecorder& recorder, PipelineStore& pipelines,
                      std::span<const PlannedMatmul> matmuls, std::span<const size_t> turns,
                      const BufferSlice& scratch) {
  size_t first = 0;
  for (const size_t count : turns) {
    HEARTH_TRY(record_turn(recorder, pipelines, matmuls.subspan(first, count), scratch));
    first += count;
  }
  return {};
}

}  // namespace hearth
