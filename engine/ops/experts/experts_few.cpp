// experts_few: up to eight rows of MXFP4. Workgroups have all rows, and divide the outputs of all
// experts in use among them.
#include "params/experts_few.h"

#include <algorithm>
#include <optional>

#include "engine/ops/experts/family.h"
#include "engine/ops/matmul/family.h"
#include "engine/ops/tuning/profile.h"

namespace hearth {
namespace {

constexpr uint32_t kMostExpertsInUse = 128;  // in the lists of the kernel

// Empty if there are too many rows or experts, or if the device has no room.
std::optional<ExpertProduct> few_product(const DeviceCaps& caps, const ExpertsShape& shape,
                                         const ExpertProductShape& product) {
  const uint32_t resident = tuning_profile(caps).experts.few_subgroups;
  constexpr uint32_t kMostRows = 8;
  if (shape.rows > kMostRows || shape.experts > kMostExpertsInUse) return std::nullopt;
  const uint32_t subgroups =
      std::max(team_subgroups(resident, product.inputs), kMostExpertsInUse / kTeamLanes);
  // Sums of two rounds, and the lists of rows and experts.
  const uint32_t shared_bytes = 2 * subgroups * kTeamLanes * 16 +
                                (kMostRows + 1) * (shape.experts + subgroups + shape.used) * 4;
  if (!team_fits(caps, subgroups, shared_bytes)) return std::nullopt;
  const uint32_t groups = multiprocessors(caps) * std::max(1u, resident / subgroups);
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

bool supports_experts_few(const ExpertsRequest& request) {
  const auto& [caps, shape, deterministic] = request;
  return suits_few_rows(request) && few_product(caps, shape, gate_up_product(shape)) &&
         few_product(caps, shape, down_product(shape));
}

ExpertsPlan plan_experts_few(const ExpertsRequest& request) {
  const auto& [caps, shape, deterministic] = request;
  return few_rows_plan(shape, *few_product(caps, shape, gate_up_product(shape)),
                       *few_product(caps, shape, down_product(shape)));
}

}  // namespace

const ExpertsFamily kExpertsFew{"experts_few", supports_experts_few, plan_experts_few};

}  // namespace hearth
