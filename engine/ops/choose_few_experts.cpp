#include "engine/ops/choose_few_experts.h"

#include <algorithm>

#include "engine/ops/choose_tile.h"
#include "engine/ops/tuning/profile.h"
#include "params/experts_few.h"
#include "params/experts_one_row.h"

namespace hearth {
namespace {

constexpr uint32_t kTeamLanes = 32;          // per subgroup
constexpr uint32_t kTeamInputs = 128;        // inputs that a subgroup multiplies at a time
constexpr uint32_t kOneRowResults = 8;       // of experts_one_row; MXFP4 has 32 per block
constexpr uint32_t kMostExpertsInUse = 128;  // in the lists of experts_few

// Subgroups that divide k, each with the same number of steps.
uint32_t team_subgroups(uint32_t most, uint32_t inputs) {
  const uint32_t steps = divide_up(inputs, kTeamInputs);
  return divide_up(steps, divide_up(steps, most));
}

bool team_fits(const DeviceCaps& caps, uint32_t subgroups, uint32_t shared_bytes) {
  constexpr uint32_t kSmallArrays = 256;
  return subgroups * kTeamLanes <= caps.limits.max_group_invocations &&
         shared_bytes + kSmallArrays <= caps.limits.max_shared_bytes;
}

// A product of up to eight rows.
std::optional<ExpertProduct> choose_few_product(const DeviceCaps& caps, const FewRowsTuning& tuning,
                                                const ExpertsShape& shape,
                                                const ExpertProductShape& product) {
  constexpr uint32_t kMostRows = 8;
  if (shape.rows > kMostRows || shape.experts > kMostExpertsInUse) return std::nullopt;
  const uint32_t subgroups = std::max(team_subgroups(tuning.expert_subgroups, product.inputs),
                                      kMostExpertsInUse / kTeamLanes);
  // Sums of two rounds, and the lists of rows and experts.
  const uint32_t shared_bytes = 2 * subgroups * kTeamLanes * 16 +
                                (kMostRows + 1) * (shape.experts + subgroups + shape.used) * 4;
  if (!team_fits(caps, subgroups, shared_bytes)) return std::nullopt;
  const uint32_t groups = multiprocessors(caps) * std::max(1u, tuning.expert_subgroups / subgroups);
  return ExpertProduct{
      .kernel = {.pipeline = {.kernel = variant("experts_few", product.format),
                              .constants =
                                  params::ExpertsFewConstants{
                                      .kWorkgroupSize = subgroups * kTeamLanes,
                                      .kInputs = product.inputs,
                                      .kSubgroups = subgroups,
                                      .kUsed = shape.used,
                                      .kExperts = shape.experts,
                                      .kLaneExperts = divide_up(shape.experts, kTeamLanes),
                                      .kRoutes = product.gated ? 1u : 0u,
                                      .kOverAll = shape.over_all ? 1u : 0u},
                              .subgroup_size = caps.subgroup_size},
                 .groups = {.x = 1, .y = groups}},
      .half_results = product.gated,
      .can_norm = product.gated,
      .all_rows = true};
}

// A product of one row. One workgroup per multiprocessor stays for all of its rounds.
std::optional<ExpertProduct> choose_one_row_product(const DeviceCaps& caps,
                                                    const FewRowsTuning& tuning,
                                                    const ExpertsShape& shape,
                                                    const ExpertProductShape& product) {
  constexpr uint32_t kMostUsed = 4;  // whose rows fit into registers
  const uint32_t results = product.gated ? product.outputs / 2 : product.outputs;
  if (shape.rows != 1 || shape.used > kMostUsed) return std::nullopt;
  const uint32_t subgroups = team_subgroups(tuning.quantized->subgroups, product.inputs);
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
                                      .kAhead = product.gated ? tuning.gate_rounds
                                                              : tuning.sum_rounds,
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

}  // namespace

std::optional<FewExperts> choose_few_experts(const DeviceCaps& caps, const ExpertsShape& shape) {
  const FewRowsTuning tuning = tuning_profile(caps).few_rows;
  if (!tuning.quantized || !caps.features.lane_fragments || shape.gate_up != WeightFormat::kMxfp4 ||
      shape.down != WeightFormat::kMxfp4 || !matrix_units(caps, WeightFormat::kMxfp4))
    return std::nullopt;
  const ExpertProductShape gate_up{shape.gate_up, shape.width, 2 * shape.mlp_width, true};
  const ExpertProductShape down{shape.down, shape.mlp_width, shape.width, false};
  for (const auto choose : {choose_one_row_product, choose_few_product}) {
    const std::optional<ExpertProduct> first = choose(caps, tuning, shape, gate_up);
    const std::optional<ExpertProduct> second = choose(caps, tuning, shape, down);
    if (first && second) return FewExperts{*first, *second};
  }
  return std::nullopt;
}

}  // namespace hearth
