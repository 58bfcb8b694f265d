#include "engine/ops/kernel_choice.h"
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

}  // namespace hearth
