// matvec_team: one vector and float weights, in float arithmetic; several vectors if the matrix is
// small. The lanes of a workgroup divide k.
#include "params/matvec_team.h"

#include <algorithm>
#include <bit>

#include "engine/ops/matmul/family.h"
#include "engine/ops/tuning/profile.h"

namespace hearth {
namespace {

// Whether a matrix of F32 weights, a router's, is so small that every row may read it again: from
// a cache, in more workgroups and with less waiting than if rows shared what they read.
bool reads_few_bytes(const TeamTuning& tuning, const MatmulShape& shape) {
  return shape.format == WeightFormat::kF32 && shape.outputs <= tuning.reread_outputs &&
         uint64_t{shape.rows} * shape.outputs * shape.inputs * 4 <= tuning.reread_bytes;
}

// How the lanes of a team of matvec_team divide a row of float weights; a chunk is one load.
struct TeamStep {
  uint32_t lanes, lane_chunks;
};

TeamStep team_step(const DeviceCaps& caps, uint32_t chunks, uint32_t most_lanes) {
  const uint32_t lane_chunks = divide_up(chunks, most_lanes);
  return {divide_up(divide_up(chunks, lane_chunks), caps.subgroup_size) * caps.subgroup_size,
          lane_chunks};
}

uint32_t fitting_lanes(const DeviceCaps& caps, uint32_t lanes) {
  return group_size(caps, std::min(lanes, kMostSubgroups * caps.subgroup_size));
}

// The most lanes of a workgroup.
uint32_t team_lanes(const DeviceCaps& caps, const TeamTuning& tuning) {
  return fitting_lanes(caps, caps.features.ordered_groups ? tuning.chained_lanes : tuning.lanes);
}

uint32_t row_chunks(const MatmulShape& shape) {
  return shape.inputs / (shape.format == WeightFormat::kF32 ? 4 : 8);
}

bool supports_matvec_team(const MatmulRequest& request) {
  const auto& [caps, shape, deterministic] = request;
  const TeamTuning tuning = tuning_profile(caps).team;
  const bool floats = format_info(shape.format).is_float();
  const bool one = shape.rows == 1, small = shape.rows > 1 && reads_few_bytes(tuning, shape);
  if (deterministic || !floats || !(one || small)) return false;
  // A lane's part of a row must not be too large.
  const TeamStep team = team_step(caps, row_chunks(shape), team_lanes(caps, tuning));
  return team.lane_chunks <= tuning.loads;
}

MatmulPlan plan_matvec_team(const MatmulRequest& request) {
  const auto& [caps, shape, deterministic] = request;
  const TeamTuning tuning = tuning_profile(caps).team;
  const uint32_t chunks = row_chunks(shape);
  const auto outputs_of = [&](const TeamStep& team) {
    return std::bit_floor(std::min(
        {std::max(tuning.loads / team.lane_chunks, 1u), caps.subgroup_size, shape.outputs}));
  };
  uint32_t most = team_lanes(caps, tuning);
  TeamStep team = team_step(caps, chunks, most);
  const uint32_t device_groups = multiprocessors(caps) * (tuning.resident_lanes / most);
  uint32_t rounds =
      divide_up(shape.outputs, outputs_of(team) * (most / team.lanes) * device_groups);
  if (rounds > tuning.most_rounds) {
    most = std::min(most, fitting_lanes(caps, std::max(chunks / 2, tuning.lanes)));
    team = team_step(caps, chunks, most);
    rounds = tuning.small_rounds;
  }
  const uint32_t outputs = outputs_of(team), teams = most / team.lanes;
  const uint32_t lanes = team.lanes * teams;
  return {.multiply = {.pipeline = {.kernel = variant("matvec_team", shape.format),
                                    .constants =
                                        params::MatvecTeamConstants{
                                            .kWorkgroupSize = lanes,
                                            .kOutputs = outputs,
                                            .kInputs = shape.inputs,
                                            .kSubgroups = lanes / caps.subgroup_size,
                                            .kRounds = rounds,
                                            .kTeams = teams},
                                    .subgroup_size = caps.subgroup_size},
                       .groups = {.x = divide_up(shape.outputs, outputs * teams * rounds),
                                  .y = shape.rows}},
          .can_norm = true,
          .can_gate = shape.rows == 1 && outputs % 2 == 0};
}

}  // namespace

const MatmulFamily kMatvecTeam{"matvec_team", supports_matvec_team, plan_matvec_team};

}  // namespace hearth
