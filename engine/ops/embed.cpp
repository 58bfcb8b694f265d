#include "engine/ops/embed.h"

#include <string>

#include <fmt/format.h>

#include "params/embed.h"

namespace hearth {

KernelPlan choose_embed(const DeviceCaps& caps, const EmbedShape& shape) {
  // One invocation per piece of 32 weights: a row of 4096 has 128 of them.
  const uint32_t pieces = divide_up(shape.width, kPieceWeights);
  const uint32_t lanes = group_size(caps, is_cpu(caps) || pieces <= 64 ? 32 : 64);
  return {.pipeline = {.kernel = "embed." + std::string(format_info(shape.format).header),
                       .constants = params::EmbedConstants{.kWorkgroupSize = lanes}},
          .groups = {.x = divide_up(pieces, lanes), .y = shape.rows}};
}

OpCost embed_cost(const EmbedShape& shape) {
  const FormatInfo& format = format_info(shape.format);
  const double values = 1.0 * shape.rows * shape.width;
  return {.memory_bytes = values / format.block_weights * format.block_bytes,
          .activation_bytes = 4 * values,
          .operations = values};
}

Status record_embed(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                    const Embed& op) {
  const EmbedShape& shape = op.shape;
  const FormatInfo& format = format_info(shape.format);
  const uint64_t weights = uint64_t{shape.vocabulary} * shape.width;
  if (weights == 0 || weights > UINT32_MAX || shape.width % format.block_weights != 0)
    return Error{
        ErrorKind::kInvalid,
        fmt::format("embedding table of {} x {} in {}: rows in multiples of {} weights and "
                    "fewer than 2^32 weights are possible",
                    shape.vocabulary, shape.width, format.name, format.block_weights)};
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(plan.pipeline));
  const params::Embed params{.ids = op.ids,
                             .sampled = op.sampled,
                             .weight = op.weight,
                             .y = op.y,
                             .width = shape.width,
                             .vocabulary = shape.vocabulary,
                             .scale = op.scale,
                             .first = op.first};
  recorder.dispatch({.pipeline = *pipeline, .arguments = params, .groups = plan.groups});
  return {};
}

}  // namespace hearth
