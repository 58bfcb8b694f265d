// experts_team, experts_integer and experts_float do not group rows. Each row is multiplied by each
// of its experts separately, as a matrix by a vector. experts_sum_integer also adds up a row's
// experts.
#include <algorithm>
#include <optional>

#include "engine/ops/experts/family.h"
#include "engine/ops/matmul/family.h"
#include "engine/ops/tuning/profile.h"

namespace hearth {
namespace {

bool is_integer_kernel(const KernelPlan& kernel) {
  return kernel.pipeline.kernel.find("_integer.") != std::string::npos;
}

// How many workgroups per tile let all workgroups run in as few full waves as possible, if
// `at_once` run at once.
uint32_t groups_per_tile(const ExpertsTuning& tuning, uint32_t tiles, uint32_t at_once) {
  uint32_t best = 1, best_percent = 0;
  for (uint32_t waves = 1; waves <= tuning.most_waves; ++waves) {
    const uint32_t groups = waves * at_once / tiles;
    const uint32_t percent = tiles * groups * 100 / (waves * at_once);
    if (percent > best_percent) {
      best = groups;
      best_percent = percent;
    }
    if (percent >= tuning.full_percent) break;
  }
  return best;
}

// Divides the outputs of every tile among as many workgroups as run at once. A workgroup converts x
// to integers first, and with experts it chooses them, so a few that stay are better than many.
void spread_integer(const DeviceCaps& caps, uint32_t outputs, uint32_t tiles, KernelPlan& kernel) {
  constexpr uint32_t kMostPartialBytes = 12 * 1024;  // of shared memory
  const TuningProfile tuning = tuning_profile(caps);
  KernelConstants& constants = kernel.pipeline.constants;
  const bool large = constants.workgroup_size() > tuning.integer.group_lanes;
  const uint32_t at_once = multiprocessors(caps) * (large ? 1 : tuning.integer.resident_groups);
  const uint32_t round_outputs = constants["kOutputs"] * constants["kTeams"];
  const uint32_t groups = groups_per_tile(tuning.experts, tiles, at_once);
  const uint32_t rounds = divide_up(outputs, round_outputs * groups);
  const uint32_t most = kMostPartialBytes / (4 * constants["kOutputs"] * constants["kSubgroups"]);
  constants.set("kRounds", std::clamp(rounds, 1u, std::max(most, 1u)));
  kernel.groups.x = divide_up(outputs, round_outputs * constants["kRounds"]);
}

// One row per tile: the matrix-vector kernel of a single row, for every pair.
ExpertProduct vector_product(const DeviceCaps& caps, const ExpertProductShape& product,
                             uint32_t tiles) {
  const MatmulPlan plan = choose_matmul(caps, {.format = product.format,
                                               .rows = 1,
                                               .inputs = product.inputs,
                                               .outputs = product.outputs,
                                               .sibling_outputs = product.outputs * (tiles - 1)});
  ExpertProduct chosen{.kernel = plan.multiply};
  PipelineInfo& pipeline = chosen.kernel.pipeline;
  const bool teams = !pipeline.kernel.starts_with("matvec_float");
  chosen.can_norm = teams;
  if (product.gated && pipeline.constants["kOutputs"] % 2 != 0) {
    const uint32_t outputs = 2 * pipeline.constants["kOutputs"];
    pipeline.constants.set("kOutputs", outputs);
    const uint32_t group_outputs =
        outputs * (teams ? pipeline.constants["kTeams"] * pipeline.constants["kRounds"]
                         : pipeline.constants.workgroup_size() / caps.subgroup_size);
    chosen.kernel.groups.x = divide_up(product.outputs, group_outputs);
  }
  if (is_integer_kernel(chosen.kernel)) spread_integer(caps, product.outputs, tiles, chosen.kernel);
  pipeline.kernel = experts_kernel(pipeline.kernel);
  chosen.kernel.groups.y = tiles;
  return chosen;
}

// A product that adds up the experts of each row, as if their inputs were one longer row. Empty if
// there is no kernel for it.
std::optional<ExpertProduct> summing_product(const DeviceCaps& caps, const ExpertsShape& shape) {
  const MatmulPlan plan = choose_matmul(caps, {.format = shape.down,
                                               .rows = 1,
                                               .inputs = shape.used * shape.mlp_width,
                                               .outputs = shape.width});
  if (!is_integer_kernel(plan.multiply)) return std::nullopt;
  ExpertProduct chosen{.kernel = plan.multiply, .sums = true};
  spread_integer(caps, shape.width, shape.rows, chosen.kernel);
  PipelineInfo& pipeline = chosen.kernel.pipeline;
  pipeline.constants.set("kExpertInputs", shape.mlp_width);
  pipeline.kernel = variant("experts_sum_integer", shape.down);
  chosen.kernel.groups.y = shape.rows;
  return chosen;
}

bool supports_experts_vectors(const ExpertsRequest& request) { return !shares_experts(request); }

ExpertsPlan plan_experts_vectors(const ExpertsRequest& request) {
  const auto& [caps, shape, deterministic] = request;
  ExpertsPlan plan;
  plan.tiles = most_tiles(shape, 1);
  plan.gate_up = vector_product(caps, gate_up_product(shape), plan.tiles);
  const std::optional<ExpertProduct> sums = summing_product(caps, shape);
  plan.down = sums ? *sums : vector_product(caps, down_product(shape), plan.tiles);
  return plan;
}

}  // namespace

const ExpertsFamily kExpertsVectors{"experts", supports_experts_vectors, plan_experts_vectors};

}  // namespace hearth
