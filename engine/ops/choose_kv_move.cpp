#include "engine/ops/kernel_choice.h"

namespace hearth {

KernelPlan choose_kv_move(const DeviceCaps& caps, const KvMoveShape& shape) {
  // A row of 128 halves is 16 vecs; more lanes would be idle.
  return {.pipeline = {.kernel = "kv_move", .constants = {group_size(caps, 32)}},
          .groups = {.x = shape.kv_heads, .y = shape.planes, .z = shape.lists}};
}

}  // namespace hearth
