#include "engine/ops/block_copy.h"

#include <fmt/format.h>

#include "params/block_copy.h"

namespace hearth {

KernelPlan choose_block_copy(const DeviceCaps& caps, const BlockCopyShape& shape) {
  const uint32_t lanes = group_size(caps, 128);
  const uint32_t ahead = 4;
  return {.pipeline = {.kernel = "block_copy",
                       .constants =
                           params::BlockCopyConstants{.kWorkgroupSize = lanes, .kAhead = ahead}},
          .groups = {.x = divide_up(shape.block_bytes / 16, lanes * ahead),
                     .y = shape.pairs,
                     .z = shape.planes}};
}

OpCost block_copy_cost(const BlockCopyShape& shape) {
  return {.memory_bytes = 2.0 * shape.pairs * shape.planes * shape.block_bytes};
}

Status record_block_copy(CommandRecorder& recorder, PipelineStore& pipelines,
                         const KernelPlan& plan, const BlockCopy& op) {
  const BlockCopyShape& shape = op.shape;
  if (shape.pairs == 0 || shape.planes == 0 || shape.block_bytes == 0 ||
      shape.block_bytes % 16 != 0)
    return Error{ErrorKind::kInvalid,
                 fmt::format("copy of {} blocks of {} bytes in {} planes: sizes in multiples of 16 "
                             "are possible",
                             shape.pairs, shape.block_bytes, shape.planes)};
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(plan.pipeline));
  const params::BlockCopy params{
      .pairs = op.pairs, .planes = op.planes, .from = op.from, .to = op.to};
  recorder.dispatch({.pipeline = *pipeline, .arguments = params, .groups = plan.groups});
  return {};
}

}  // namespace hearth
