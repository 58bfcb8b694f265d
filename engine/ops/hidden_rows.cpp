#include "engine/ops/hidden_rows.h"

#include "params/compare_hidden.h"
#include "params/keep_hidden.h"

namespace hearth {
namespace {

Status check_hidden_shape(const HiddenRowsShape& shape) {
  if (shape.width == 0 || shape.width % 8 != 0)
    return Error{ErrorKind::kInvalid, "hidden states are kept only if their width divides by 8"};
  return {};
}

}  // namespace

Status record_keep_hidden(CommandRecorder& recorder, PipelineStore& pipelines,
                          const KernelPlan& plan, const KeepHidden& op) {
  HEARTH_TRY(check_hidden_shape(op.shape));
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(plan.pipeline));
  const params::KeepHidden params{.x = op.x.address(),
                                  .places = op.places.address(),
                                  .pages = op.pages.table.address(),
                                  .width = op.shape.width,
                                  .slot_pages = op.pages.slot_pages};
  // The table stands for the pages, which have no buffer of their own here.
  recorder.dispatch({.pipeline = *pipeline,
                     .push = params,
                     .groups = plan.groups,
                     .accesses = {reads(op.x), reads(op.places), writes(op.pages.table)}});
  return {};
}

Status record_compare_hidden(CommandRecorder& recorder, PipelineStore& pipelines,
                             const KernelPlan& plan, const CompareHidden& op) {
  HEARTH_TRY(check_hidden_shape(op.shape));
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(plan.pipeline));
  const params::CompareHidden params{.x = op.x.address(),
                                     .comparisons = op.comparisons.address(),
                                     .pages = op.pages.table.address(),
                                     .similarity = op.similarity.address(),
                                     .width = op.shape.width,
                                     .slot_pages = op.pages.slot_pages};
  recorder.dispatch({.pipeline = *pipeline,
                     .push = params,
                     .groups = plan.groups,
                     .accesses = {reads(op.x), reads(op.comparisons), reads(op.pages.table),
                                  writes(op.similarity)}});
  return {};
}

}  // namespace hearth
