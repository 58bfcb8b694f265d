#include "engine/ops/kernel_choice.h"
#include "params/pool_rows.h"

namespace hearth {

KernelPlan choose_pool_rows(const DeviceCaps& caps, const PoolRowsShape& shape) {
  const uint32_t lanes = group_size(caps, 256);
  return {.pipeline = {.kernel = "pool_rows",
                       .constants = params::PoolRowsConstants{.kWorkgroupSize = lanes}},
          .groups = {.x = divide_up(shape.width, lanes), .y = shape.ranges}};
}

}  // namespace hearth
