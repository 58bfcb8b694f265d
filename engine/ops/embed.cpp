#include "engine/ops/embed.h"

#include <fmt/format.h>

#include "params/embed.h"

namespace hearth {

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
