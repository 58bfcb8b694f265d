#include "engine/ops/kv_move.h"

#include <fmt/format.h>

#include "params/kv_move.h"

namespace hearth {

Status record_kv_move(CommandRecorder& recorder, PipelineStore& pipelines, const KernelPlan& plan,
                      const KvMove& op) {
  const KvMoveShape& shape = op.shape;
  if (shape.lists == 0 || shape.planes == 0 || shape.kv_heads == 0 ||
      op.planes.bytes < shape.planes * sizeof(params::KvPlane) ||
      op.lists.bytes < shape.lists * sizeof(params::KvMoveList))
    return Error{ErrorKind::kInvalid,
                 fmt::format("cannot move KV rows of {} lists in {} planes of {} heads",
                             shape.lists, shape.planes, shape.kv_heads)};
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(plan.pipeline));
  const params::KvMove params{.planes = op.planes.address(),
                              .lists = op.lists.address(),
                              .words = op.words.address(),
                              .kv_heads = shape.kv_heads};
  recorder.dispatch(
      {.pipeline = *pipeline,
       .push = params,
       .groups = plan.groups,
       .accesses = {reads_writes(op.cache), reads(op.planes), reads(op.lists), reads(op.words)}});
  return {};
}

}  // namespace hearth
