// matvec_float: any weights on any GPU, in float arithmetic. One subgroup per row of weights.
#include "params/matvec_float.h"

#include <algorithm>

#include "engine/ops/matmul/family.h"
#include "engine/ops/tuning/profile.h"

namespace hearth {
namespace {

// What a lane of matvec_float loads at a time: `ahead` chunks of 16 bytes from each of `outputs`
// rows.
struct FloatStep {
  uint32_t outputs, ahead;
};

// With few vectors, few outputs per subgroup give many subgroups, whose loads keep the memory busy.
// With more, each weight is used more often, so registers go to sums.
FloatStep float_step(const FloatTuning& tuning, const MatmulShape& shape, uint32_t rows_at_once) {
  const bool floats = format_info(shape.format).is_float();
  if (rows_at_once > tuning.few_rows)
    return {floats ? tuning.more_float_outputs : tuning.more_quantized_outputs, 1};
  const bool large = shape.outputs >= tuning.large_outputs;
  if (!floats) return {large ? tuning.quantized_outputs : 1, 1};
  return large ? FloatStep{tuning.float_outputs, 1} : FloatStep{1, tuning.small_loads};
}

bool supports_matvec_float(const MatmulRequest&) { return true; }

MatmulPlan plan_matvec_float(const MatmulRequest& request) {
  const auto& [caps, shape, deterministic] = request;
  const uint32_t rows_at_once = matvec_rows(request);
  const FloatTuning tuning = tuning_profile(caps).matvec;
  const uint32_t lanes =
      group_size(caps, std::min(rows_at_once == 1 ? tuning.one_row_lanes : tuning.lanes,
                                kMostSubgroups * caps.subgroup_size));
  const auto [outputs, ahead] = float_step(tuning, shape, rows_at_once);
  MatmulPlan plan{
      .multiply = {.pipeline = {.kernel = variant("matvec_float", shape.format),
                                .constants = params::MatvecFloatConstants{.kWorkgroupSize = lanes,
                                                                          .kRows = rows_at_once,
                                                                          .kOutputs = outputs,
                                                                          .kAhead = ahead},
                                .subgroup_size = caps.subgroup_size},
                   .groups = {.x = divide_up(shape.outputs, outputs * lanes / caps.subgroup_size),
                              .y = divide_up(shape.rows, rows_at_once)}}};
  plan.can_gate = shape.rows == 1 && !deterministic && outputs % 2 == 0;
  return plan;
}

}  // namespace

const MatmulFamily kMatvecFloat{"matvec_float", supports_matvec_float, plan_matvec_float};

}  // namespace hearth
