#include "engine/ops/experts.h"

#include <cmath>

#include <fmt/format.h>

#include "engine/ops/experts/scratch.h"
#include "params/combine_experts.h"
#include "params/experts.h"
#include "params/group_experts.h"
#include "params/half_rows.h"
#include "params/route.h"

namespace hearth {
namespace {

Status check_experts(const ExpertsPlan& plan, const Experts& op) {
  const ExpertsShape& shape = op.shape;
  if (shape.rows == 0 || shape.used == 0 || shape.used > shape.experts ||
      shape.experts > kMostExperts || shape.used > kMostUsedExperts)
    return Error{ErrorKind::kInvalid, fmt::format("no kernel for {} rows with {} of {} experts",
                                                  shape.rows, shape.used, shape.experts)};
  for (const auto& [format, inputs] :
       {std::pair(shape.gate_up, shape.width), std::pair(shape.down, shape.mlp_width)}) {
    const FormatInfo& info = format_info(format);
    const uint32_t unit = info.is_float() ? kFloatInputUnit : info.block_weights;
    if (inputs == 0 || inputs % unit != 0)
      return Error{ErrorKind::kInvalid,
                   fmt::format("experts of {} weights: rows of {} are not a multiple of {}",
                               info.name, inputs, unit)};
  }
  if (op.scratch.bytes < plan.scratch_bytes)
    return Error{ErrorKind::kInvalid,
                 fmt::format("these experts need {} bytes of scratch", plan.scratch_bytes)};
  if (op.leaves_parts && (plan.group || !plan.combine))
    return Error{ErrorKind::kInvalid, "these experts have no results of their own to be left"};
  if (op.norm && !plan.can_norm())
    return Error{ErrorKind::kInvalid, "these experts cannot norm their rows"};
  if (plan.tiles > kMostExpertTiles)
    return Error{ErrorKind::kInvalid,
                 fmt::format("{} tiles of experts are more than {}", plan.tiles, kMostExpertTiles)};
  return {};
}

// Where a product's rows come from and go to.
struct ProductRows {
  BufferSlice x, y;
  std::optional<BufferSlice> sources;  // none: row p / row_pairs
  uint32_t row_pairs = 1;
  std::optional<BufferSlice> scales;
  std::optional<ExpertActivation> activation;
  std::optional<BufferSlice> logits;  // of which it chooses the experts: writes tiles and scales
  std::optional<ExpertNorm> norm;     // of x
  bool sums = false;                  // adds up the experts of a row
};

uint32_t gate_kind(ExpertActivation activation) {
  return activation == ExpertActivation::kSilu ? params::kGateSilu : params::kGateLimited;
}

Status record_expert_product(CommandRecorder& recorder, PipelineStore& pipelines,
                             const ExpertsPlan& plan, const ExpertsShape& shape,
                             const ExpertProduct& product, const ExpertWeights& weights,
                             const BufferSlice& tiles, const ProductRows& rows, uint32_t inputs,
                             uint32_t outputs) {
  PipelineInfo info = product.kernel.pipeline;
  const bool routes = rows.logits.has_value();
  info.constants.set("kEpilogue", (weights.bias ? params::kEpilogueBias : 0) |
                                      (rows.scales && !routes ? params::kEpilogueScale : 0));
  if (rows.norm) info.constants.set("kNorm", 1u);
  if (rows.activation) {
    info.constants.set("kGate", gate_kind(*rows.activation));
    if (product.half_results) info.constants.set("kHalfResults", 1u);
  }
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(info));
  // Kernels get valid addresses even for what they do not use.
  const BufferSlice sources = rows.sources.value_or(tiles);
  const BufferSlice scales = rows.scales.value_or(tiles);
  const BufferSlice bias = weights.bias.value_or(tiles);
  const BufferSlice table = weights.table.value_or(weights.matrices);
  const BufferSlice logits = rows.logits.value_or(tiles);
  const BufferSlice norm_weight = rows.norm ? rows.norm->weight : weights.matrices;
  const params::Experts params{
      .weight = weights.stride_bytes != 0 ? weights.matrices : table,
      .x = rows.x,
      .y = rows.sums ? reads_writes(rows.y) : writes(rows.y),
      .bias = bias,
      .tiles = routes ? writes(tiles) : reads(tiles),
      .sources = sources,
      .scales = routes ? writes(scales) : reads(scales),
      .logits = logits,
      .norm_weight = norm_weight,
      .weight_stride = weights.stride_bytes,
      .rows = rows.sums || product.all_rows ? shape.rows : plan.positions(),
      .inputs = inputs,
      .outputs = outputs,
      .row_pairs = rows.sources ? 0 : rows.row_pairs,
      .experts = shape.experts,
      .epsilon = rows.norm ? rows.norm->epsilon : 0,
      .matrices = weights.matrices};
  recorder.dispatch({.pipeline = *pipeline, .arguments = params, .groups = product.kernel.groups});
  return {};
}

}  // namespace

double touched_experts(const ExpertsShape& shape) {
  const double share = static_cast<double>(shape.used) / shape.experts;
  return shape.experts * (1 - std::pow(1 - share, shape.rows));
}

OpCost experts_cost(const ExpertsShape& shape) {
  const uint64_t expert_bytes = matrix_bytes(shape.gate_up, 2 * shape.mlp_width, shape.width) +
                                matrix_bytes(shape.down, shape.width, shape.mlp_width);
  const double pairs = 1.0 * shape.rows * shape.used;
  const double width = shape.width, mlp_width = shape.mlp_width;
  return {.memory_bytes = touched_experts(shape) * static_cast<double>(expert_bytes),
          .activation_bytes = 4 * pairs * (2 * width + 3 * mlp_width),
          .operations = 6 * pairs * width * mlp_width};
}

std::optional<PartsPlan> plan_expert_parts(const ExpertsPlan& plan, const ExpertsShape& shape) {
  if (plan.group || !plan.combine) return std::nullopt;
  const ExpertScratch::Part& results = expert_scratch(plan, shape).results;
  return PartsPlan{.offset = results.offset,
                   .bytes = results.bytes,
                   .splits = shape.used,
                   .row_stride = shape.used * shape.width,
                   .split_stride = shape.width};
}

Status record_experts(CommandRecorder& recorder, PipelineStore& pipelines, const ExpertsPlan& plan,
                      const Experts& op) {
  HEARTH_TRY(check_experts(plan, op));
  const ExpertsShape& shape = op.shape;
  const ExpertScratch places = expert_scratch(plan, shape);
  const auto part = [&](const ExpertScratch::Part& place) {
    return op.scratch.slice(place.offset, place.bytes);
  };
  const BufferSlice chosen = part(places.chosen), weights = part(places.weights);

  if (plan.route) {
    HEARTH_ASSIGN(const Pipeline* route, pipelines.get(plan.route->pipeline));
    recorder.dispatch({.pipeline = *route,
                       .arguments = params::Route{.logits = op.logits,
                                                  .chosen = chosen,
                                                  .weights = weights,
                                                  .experts = shape.experts},
                       .groups = plan.route->groups});
  }

  // Without groups, tile p is pair p.
  BufferSlice tiles = chosen, scales = weights, pair_places = chosen;
  std::optional<BufferSlice> sources;
  if (plan.group) {
    tiles = part(places.tiles);
    scales = part(places.scales);
    sources = part(places.sources);
    pair_places = part(places.places);
    HEARTH_ASSIGN(const Pipeline* group, pipelines.get(plan.group->pipeline));
    recorder.dispatch({.pipeline = *group,
                       .arguments = params::GroupExperts{.chosen = chosen,
                                                         .weights = weights,
                                                         .tiles = tiles,
                                                         .sources = *sources,
                                                         .scales = scales,
                                                         .places = pair_places,
                                                         .pairs = shape.rows * shape.used,
                                                         .row_pairs = shape.used,
                                                         .tile_rows = plan.tile_rows,
                                                         .tile_count = plan.tiles},
                       .groups = plan.group->groups});
  }

  BufferSlice x = op.x;
  if (plan.prepare) {
    x = part(places.prepared);
    HEARTH_ASSIGN(const Pipeline* prepare, pipelines.get(plan.prepare->pipeline));
    recorder.dispatch({.pipeline = *prepare,
                       .arguments = params::HalfRows{.x = op.x, .y = x, .width = shape.width},
                       .groups = plan.prepare->groups});
  }
  const BufferSlice hidden = part(places.hidden);
  ProductRows first{.x = x,
                    .y = hidden,
                    .sources = sources,
                    .row_pairs = shape.used,
                    .activation = shape.activation,
                    .norm = op.norm};
  if (!plan.route) {
    first.logits = op.logits;
    first.scales = scales;
  }
  HEARTH_TRY(record_expert_product(recorder, pipelines, plan, shape, plan.gate_up, op.gate_up,
                                   tiles, first, shape.width, 2 * shape.mlp_width));
  if (!plan.combine)
    return record_expert_product(
        recorder, pipelines, plan, shape, plan.down, op.down, tiles,
        {.x = hidden, .y = op.y, .row_pairs = shape.used, .scales = scales, .sums = true},
        shape.mlp_width, shape.width);
  const BufferSlice results = part(places.results);
  HEARTH_TRY(record_expert_product(recorder, pipelines, plan, shape, plan.down, op.down, tiles,
                                   {.x = hidden, .y = results, .scales = scales}, shape.mlp_width,
                                   shape.width));
  if (op.leaves_parts) return {};
  HEARTH_ASSIGN(const Pipeline* combine, pipelines.get(plan.combine->pipeline));
  recorder.dispatch({.pipeline = *combine,
                     .arguments =
                         params::CombineExperts{
                             .x = results, .places = pair_places, .y = op.y, .width = shape.width},
                     .groups = plan.combine->groups});
  return {};
}

}  // namespace hearth
