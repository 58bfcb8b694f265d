// experts_one_row: one row of MXFP4 and up to four experts, which the second product adds up. There
// is no barrier between a workgroup's rounds.
#include "params/experts_one_row.h"

#include <algorithm>
#include <optional>

#include "engine/ops/experts/family.h"
#include "engine/ops/matmul/family.h"
#include "engine/ops/tuning/profile.h"

namespace hearth {
namespace {

constexpr uint32_t kOneRowResults = 8;  // per round; MXFP4 has 32 per block

// Empty if there are more rows, or too many experts per row. One workgroup per multiprocessor stays
// for all of its rounds.
std::optional<ExpertProduct> one_row_product(const DeviceCaps& caps, const ExpertsShape& shape,
                                             const ExpertProductShape& product) {
  const TuningProfile tuning = tuning_profile(caps);
  constexpr uint32_t kMostUsed = 4;  // whose rows fit into registers
  const uint32_t results = product.results();
  if (shape.rows != 1 || shape.used > kMostUsed) return std::nullopt;
  const uint32_t subgroups = team_subgroups(tuning.few_rows.quantized->subgroups, product.inputs);
  const uint32_t all = results / kOneRowResults * (product.gated ? shape.used : 1);
  const uint32_t groups = std::min(all, multiprocessors(caps)), rounds = divide_up(all, groups);
  // Sums of all rounds, and the lists of experts.
  const uint32_t shared_bytes =
      ((rounds + 1) * kOneRowResults * 8 + 4) * subgroups + 16 * shape.used;
  if (!team_fits(caps, subgroups, shared_bytes)) return std::nullopt;
  return ExpertProduct{
      .kernel = {.pipeline = {.kernel = variant("experts_one_row", product.format),
                              .constants =
                                  params::ExpertsOneRowConstants{
                                      .kWorkgroupSize = subgroups * kTeamLanes,
                                      .kInputs = product.inputs,
                                      .kResults = results,
                                      .kSubgroups = subgroups,
                                      .kRounds = rounds,
                                      .kAhead = product.gated ? tuning.experts.gate_rounds
                                                              : tuning.experts.sum_rounds,
                                      .kUsed = shape.used,
                                      .kLaneExperts = divide_up(shape.experts, kTeamLanes),
                                      .kOverAll = shape.over_all ? 1u : 0u},
                              .subgroup_size = caps.subgroup_size},
                 .groups = {.x = 1, .y = groups}},
      .half_results = product.gated,
      .can_norm = product.gated,
      .all_rows = true,
      .sums = !product.gated};
}

bool supports_experts_one_row(const ExpertsRequest& request) {
  const auto& [caps, shape, deterministic] = request;
  return suits_few_rows(request) && one_row_product(caps, shape, gate_up_product(shape)) &&
         one_row_product(caps, shape, down_product(shape));
}

ExpertsPlan plan_experts_one_row(const ExpertsRequest& request) {
  const auto& [caps, shape, deterministic] = request;
  return few_rows_plan(shape, *one_row_product(caps, shape, gate_up_product(shape)),
                       *one_row_product(caps, shape, down_product(shape)));
}

}  // namespace

const ExpertsFamily kExpertsOneRow{"experts_one_row", supports_experts_one_row,
                                   plan_experts_one_row};

}  // namespace hearth
