#include <string>

#include "engine/ops/kernel_choice.h"
#include "params/embed.h"

namespace hearth {

KernelPlan choose_embed(const DeviceCaps& caps, const EmbedShape& shape) {
  // One invocation per piece of 32 weights: a row of 4096 has 128 of them.
  const uint32_t pieces = divide_up(shape.width, kPieceWeights);
  const uint32_t lanes = group_size(caps, is_cpu(caps) || pieces <= 64 ? 32 : 64);
  return {.pipeline = {.kernel = "embed." + std::string(format_info(shape.format).header),
                       .constants = params::EmbedConstants{.kWorkgroupSize = lanes}},
          .groups = {.x = divide_up(pieces, lanes), .y = shape.rows}};
}

}  // namespace hearth
