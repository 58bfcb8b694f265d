#include <algorithm>

#include "engine/ops/experts/family.h"
#include "engine/ops/experts/scratch.h"
#include "engine/ops/matmul/family.h"
#include "engine/ops/tuning/profile.h"
#include "params/combine_experts.h"
#include "params/group_experts.h"
#include "params/route.h"

namespace hearth {
namespace {

// Whether the first product's workgroups should choose the experts themselves: not if most of them
// come after others, which would have to choose again.
bool routes_itself(const DeviceCaps& caps, const ExpertsShape& shape, const KernelPlan& gate_up) {
  constexpr uint32_t kMostLaneExperts = 8;  // that a lane has registers for
  const uint32_t most_groups =
      tuning_profile(caps).experts.most_routing_groups * multiprocessors(caps);
  return shape.experts <= kMostLaneExperts * caps.subgroup_size &&
         gate_up.groups.x * gate_up.groups.y <= most_groups;
}

void route_in_product(const DeviceCaps& caps, const ExpertsShape& shape, KernelPlan& gate_up) {
  KernelConstants& constants = gate_up.pipeline.constants;
  constants.set("kRouteUsed", shape.used);
  constants.set("kLaneExperts", divide_up(shape.experts, caps.subgroup_size));
  constants.set("kOverAll", shape.over_all ? 1u : 0u);
}

void plan_lists(const DeviceCaps& caps, const ExpertsShape& shape, ExpertsPlan& plan) {
  const uint32_t lanes = caps.subgroup_size;
  const bool row_kernels = !is_cpu(caps) && plan.tile_rows == 1 && !plan.gate_up.all_rows;
  if (row_kernels && routes_itself(caps, shape, plan.gate_up.kernel)) {
    route_in_product(caps, shape, plan.gate_up.kernel);
  } else if (!plan.gate_up.all_rows) {
    plan.route = KernelPlan{
        .pipeline = {.kernel = "route",
                     .constants =
                         params::RouteConstants{.kWorkgroupSize = lanes,
                                                .kUsed = shape.used,
                                                .kLaneExperts = divide_up(shape.experts, lanes),
                                                .kOverAll = shape.over_all ? 1u : 0u},
                     .subgroup_size = lanes},
        .groups = {.x = shape.rows}};
  }
  if (plan.tile_rows > 1) {
    constexpr uint32_t kMostSubgroupsOfAny = 32;  // no device guarantees more per workgroup
    const uint32_t most = std::min(1024u, kMostSubgroupsOfAny * lanes);
    const uint32_t group_lanes =
        is_cpu(caps) ? lanes
                     : group_size(caps, std::clamp(pairs_of(shape), std::min(128u, most), most));
    plan.group = KernelPlan{
        .pipeline = {.kernel = "group_experts",
                     .constants = params::GroupExpertsConstants{.kWorkgroupSize = group_lanes,
                                                                .kExperts = shape.experts},
                     .subgroup_size = lanes},
        .groups = {.x = shape.experts}};
  }
  if (plan.down.sums) return;
  const uint32_t combine_lanes = is_cpu(caps) ? lanes : group_size(caps, 128);
  plan.combine = KernelPlan{
      .pipeline = {.kernel = "combine_experts",
                   .constants = params::CombineExpertsConstants{.kWorkgroupSize = combine_lanes,
                                                                .kUsed = shape.used,
                                                                .kGrouped = plan.group ? 1u : 0u}},
      .groups = {.x = divide_up(shape.width / 4, combine_lanes), .y = shape.rows}};
}

}  // namespace

std::span<const ExpertsFamily* const> experts_families() {
  static constexpr const ExpertsFamily* kFamilies[] = {
      &kExpertsInvocation, &kExpertsOneRow, &kExpertsFew, &kExpertsVectors, &kExpertsTiles};
  return kFamilies;
}

ExpertProductShape gate_up_product(const ExpertsShape& shape) {
  return {shape.gate_up, shape.width, 2 * shape.mlp_width, true};
}

ExpertProductShape down_product(const ExpertsShape& shape) {
  return {shape.down, shape.mlp_width, shape.width, false};
}

bool shares_experts(const ExpertsRequest& request) {
  return !request.deterministic && pairs_of(request.shape) > request.shape.experts;
}

uint32_t most_tiles(const ExpertsShape& shape, uint32_t tile_rows) {
  const uint32_t pairs = pairs_of(shape);
  return tile_rows == 1 ? pairs : pairs / tile_rows + std::min(pairs, shape.experts);
}

std::string experts_kernel(const std::string& matmul) {
  return "experts" + matmul.substr(matmul.find('_'));
}

bool suits_few_rows(const ExpertsRequest& request) {
  const auto& [caps, shape, deterministic] = request;
  return !deterministic && !shares_experts(request) && caps.features.lane_fragments &&
         tuning_profile(caps).few_rows.quantized && shape.gate_up == WeightFormat::kMxfp4 &&
         shape.down == WeightFormat::kMxfp4 && matrix_units(caps, WeightFormat::kMxfp4);
}

uint32_t team_subgroups(uint32_t most, uint32_t inputs) {
  constexpr uint32_t kTeamInputs = 128;  // that a subgroup multiplies at a time
  const uint32_t steps = divide_up(inputs, kTeamInputs);
  return divide_up(steps, divide_up(steps, most));
}

bool team_fits(const DeviceCaps& caps, uint32_t subgroups, uint32_t shared_bytes) {
  constexpr uint32_t kSmallArrays = 256;
  return subgroups * kTeamLanes <= caps.limits.max_group_invocations &&
         shared_bytes + kSmallArrays <= caps.limits.max_shared_bytes;
}

ExpertsPlan few_rows_plan(const ExpertsShape& shape, const ExpertProduct& gate_up,
                          const ExpertProduct& down) {
  ExpertsPlan plan;
  plan.tiles = most_tiles(shape, 1);
  plan.gate_up = gate_up;
  plan.down = down;
  plan.halves = true;
  return plan;
}

ExpertScratch expert_scratch(const ExpertsPlan& plan, const ExpertsShape& shape) {
  ExpertScratch scratch;
  const auto place = [&](ExpertScratch::Part& part, uint64_t bytes) {
    part = {scratch.total_bytes, bytes};
    scratch.total_bytes += round_up(bytes, 256);
  };
  const uint64_t pairs = pairs_of(shape), positions = plan.positions();
  place(scratch.chosen, pairs * 4);
  place(scratch.weights, pairs * 4);
  if (plan.group) {
    place(scratch.tiles, uint64_t{plan.tiles} * 4);
    place(scratch.sources, positions * 4);
    place(scratch.scales, positions * 4);
    place(scratch.places, pairs * 4);
  }
  if (plan.prepare) place(scratch.prepared, uint64_t{shape.rows} * shape.width * 2);
  place(scratch.hidden, positions * shape.mlp_width * (plan.halves ? 2 : 4));
  if (plan.combine) place(scratch.results, positions * shape.width * 4);
  return scratch;
}

ExpertsPlan choose_experts(const DeviceCaps& caps, const ExpertsShape& shape, bool deterministic) {
  const ExpertsRequest request{caps, shape, deterministic};
  ExpertsPlan plan = first_supporting(experts_families(), request)->plan(request);
  plan_lists(caps, shape, plan);
  plan.scratch_bytes = expert_scratch(plan, shape).total_bytes;
  return plan;
}

}  // namespace hearth
