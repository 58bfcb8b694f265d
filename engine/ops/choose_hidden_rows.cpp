#include "engine/ops/kernel_choice.h"
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

}  // namespace hearth
