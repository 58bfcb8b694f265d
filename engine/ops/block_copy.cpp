#include "engine/ops/block_copy.h"

#include <fmt/format.h>

#include "params/block_copy.h"

namespace hearth {

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
  const params::BlockCopy params{.pairs = op.pairs, .planes = op.planes};
  recorder.dispatch({.pipeline = *pipeline,
                     .arguments = params,
                     .groups = plan.groups,
                     .also = {reads(op.from), writes(op.to)}});
  return {};
}

}  // namespace hearth
