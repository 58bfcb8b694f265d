#include "engine/ops/kernel_choice.h"
#include "engine/ops/tuning/profile.h"
#include "params/rms_norm.h"

namespace hearth {
namespace {

constexpr uint32_t kMostKept = 8;  // vec4 values that an invocation keeps in registers

}  // namespace

KernelPlan choose_rms_norm(const DeviceCaps& caps, const RmsNormShape& shape, bool deterministic) {
  // A single row finishes sooner with a large workgroup. Several rows finish sooner with fewer
  // lanes each. The order of the sum depends on this.
  const NormTuning tuning = tuning_profile(caps).norm;
  const uint32_t most_lanes =
      shape.rows == 1 && !deterministic ? tuning.one_row_lanes : tuning.lanes;
  // On a CPU a workgroup of one subgroup needs no barrier. On a GPU each row has one workgroup,
  // wide enough that each lane reads a few vec4 at once and keeps them until the sum is known.
  const uint32_t lanes = is_cpu(caps)
                             ? caps.subgroup_size
                             : group_size(caps, std::clamp(shape.width / 4, 64u, most_lanes));
  uint32_t kept = 0;
  if (!is_cpu(caps) && shape.width % 4 == 0) {
    kept = divide_up(shape.width / 4, lanes);
    if (kept > kMostKept) kept = 0;
  }
  return {.pipeline = {.kernel = "rms_norm",
                       .constants =
                           params::RmsNormConstants{.kWorkgroupSize = lanes,
                                                    .kResiduals = shape.residuals,
                                                    .kRegisterQuads = kept,
                                                    .kForm = static_cast<uint32_t>(shape.form)}},
          .groups = {.x = shape.rows}};
}

}  // namespace hearth
