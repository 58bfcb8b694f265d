// matmul_team: a few rows on matrix units, for devices with a known fragment layout. The subgroups
// of a workgroup divide k and keep x in registers while they read the weights.
#include "params/matmul_team.h"

#include <algorithm>

#include "engine/ops/matmul/family.h"
#include "engine/ops/tuning/profile.h"

namespace hearth {
namespace {

constexpr uint32_t kLanes = 32;   // per subgroup
constexpr uint32_t kBlock = 128;  // inputs that a subgroup multiplies at a time
constexpr uint32_t kPieceInputs = 32;
constexpr uint32_t kColumnRows = 8;  // rows of x per fragment
constexpr uint32_t kRoundOutputs = 16;

std::optional<FewRowsTeam> team_for(const DeviceCaps& caps, WeightFormat format, uint32_t columns) {
  const FewRowsTuning tuning = tuning_profile(caps).few_rows;
  const bool floats = format_info(format).is_float();
  if (columns == 1) return floats ? tuning.floats : tuning.quantized;
  if (columns == 2 && !floats) return tuning.quantized_two_columns;
  return std::nullopt;
}

// [round % 2, subgroup, column, lane] of four floats, plus the memory for a shared norm.
uint32_t shared_bytes(uint32_t subgroups, uint32_t columns) {
  return 2 * subgroups * columns * kLanes * 16 + (subgroups + columns) * kColumnRows * 4;
}

// Not for weights in F32, nor if inputs are not whole pieces.
bool supports_matmul_team(const MatmulRequest& request) {
  const auto& [caps, shape, deterministic] = request;
  if (shape.rows <= 1 || deterministic) return false;
  const uint32_t columns = divide_up(shape.rows, kColumnRows);
  const std::optional<FewRowsTeam> team = team_for(caps, shape.format, columns);
  return team && caps.features.lane_fragments && matrix_units(caps, shape.format) &&
         shape.inputs % kPieceInputs == 0 &&
         team->subgroups * kLanes <= caps.limits.max_group_invocations &&
         shared_bytes(team->subgroups, columns) <= caps.limits.max_shared_bytes;
}

MatmulPlan plan_matmul_team(const MatmulRequest& request) {
  const auto& [caps, shape, deterministic] = request;
  const uint32_t columns = divide_up(shape.rows, kColumnRows);
  const FewRowsTeam team = *team_for(caps, shape.format, columns);
  const uint32_t blocks = divide_up(shape.inputs, kBlock);
  const uint32_t splits = divide_up(blocks, team.subgroups * team.blocks);
  // No more subgroups than needed, but enough to store results.
  const uint32_t subgroups = std::max(divide_up(blocks, splits * team.blocks), 2 * columns);
  // All workgroups run at once, so there is no second wave.
  const uint32_t at_once = multiprocessors(caps) * (team.subgroups / subgroups);
  const uint32_t all_rounds = divide_up(shape.outputs + shape.sibling_outputs, kRoundOutputs);
  const uint32_t rounds = divide_up(all_rounds, std::max(1u, at_once / splits));

  MatmulPlan plan;
  plan.multiply = {
      .pipeline = {.kernel = variant("matmul_team", shape.format),
                   .constants = params::MatmulTeamConstants{.kWorkgroupSize = subgroups * kLanes,
                                                            .kInputs = shape.inputs,
                                                            .kSplits = splits,
                                                            .kSubgroups = subgroups,
                                                            .kRounds = rounds,
                                                            .kColumns = columns},
                   .subgroup_size = caps.subgroup_size},
      .groups = {.x = 1, .y = divide_up(shape.outputs, rounds * kRoundOutputs), .z = splits}};
  plan.can_gate = plan.can_share_norm = splits == 1;
  take_halves(caps, shape, plan);
  if (splits > 1) leave_parts(caps, shape, splits, columns * kColumnRows, plan);
  plan.scratch_bytes = plan.prepared_bytes + plan.part_bytes;
  return plan;
}

}  // namespace

uint64_t norm_state_bytes(uint32_t groups) {
  return uint64_t{params::kMostNormRows} * (1 + groups) * 4;
}

const MatmulFamily kMatmulTeam{"matmul_team", supports_matmul_team, plan_matmul_team};

}  // namespace hearth
