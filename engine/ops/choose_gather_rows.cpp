#include "engine/ops/kernel_choice.h"
#include "params/gather_rows.h"

namespace hearth {

KernelPlan choose_gather_rows(const DeviceCaps& caps, const GatherRowsShape& shape) {
  const uint32_t units = shape.width % 4 == 0 ? shape.width / 4 : shape.width;
  const uint32_t lanes = group_size(caps, 256);
  return {.pipeline = {.kernel = "gather_rows",
                       .constants = params::GatherRowsConstants{.kWorkgroupSize = lanes}},
          .groups = {.x = divide_up(units, lanes), .y = shape.rows}};
}

}  // namespace hearth
