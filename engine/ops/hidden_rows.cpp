#include "engine/ops/hidden_rows.h"

#include "params/compare_hidden.h"
#include "params/keep_hidden.h"

namespace hearth {
namespace {

// On a CPU a workgroup of one subgroup needs no barrier.
uint32_t hidden_row_lanes(const DeviceCaps& caps) {
  return is_cpu(caps) ? caps.subgroup_size : group_size(caps, 256);
}

}  // namespace

KernelPlan choose_keep_hidden(const DeviceCaps& caps, const HiddenRowsShape& shape) {
  return {.pipeline = {.kernel = "keep_hidden",
                       .constants =
                           params::KeepHiddenConstants{.kWorkgroupSize = hidden_row_lanes(caps)}},
          .groups = {.x = shape.rows}};
}

KernelPlan choose_compare_hidden(const DeviceCaps& caps, const HiddenRowsShape& shape) {
  return {.pipeline = {.kernel = "compare_hidden",
                       .constants = params::CompareHiddenConstants{.kWorkgroupSize =
                                                                       hidden_row_lanes(caps)}},
          .groups = {.x = params::kComparisonParts, .y = shape.rows}};
}

OpCost keep_hidden_cost(const HiddenRowsShape& shape) {
  const double values = 1.0 * shape.rows * shape.width;
  return {.memory_bytes = 2 * values, .activation_bytes = 4 * values, .operations = 3 * values};
}

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
  const params::KeepHidden params{.x = op.x,
                                  .places = op.places,
                                  .pages = op.pages.table,
                                  .width = op.shape.width,
                                  .slot_pages = op.pages.slot_pages};
  // The table stands for the pages, which have no buffer of their own here.
  recorder.dispatch({.pipeline = *pipeline, .arguments = params, .groups = plan.groups});
  return {};
}

Status record_compare_hidden(CommandRecorder& recorder, PipelineStore& pipelines,
                             const KernelPlan& plan, const CompareHidden& op) {
  HEARTH_TRY(check_hidden_shape(op.shape));
  HEARTH_ASSIGN(const Pipeline* pipeline, pipelines.get(plan.pipeline));
  const params::CompareHidden params{.x = op.x,
                                     .comparisons = op.comparisons,
                                     .pages = op.pages.table,
                                     .similarity = op.similarity,
                                     .width = op.shape.width,
                                     .slot_pages = op.pages.slot_pages};
  recorder.dispatch({.pipeline = *pipeline, .arguments = params, .groups = plan.groups});
  return {};
}

}  // namespace hearth
