#include <algorithm>
#include <bit>

#include "engine/ops/choose_few_rows.h"
#include "engine/ops/choose_tile.h"
#include "engine/ops/kernel_choice.h"
#include "engine/ops/tuning/profile.h"
#include "params/matmul_invocation.h"
#include "params/matvec_float.h"
#include "params/matvec_integer.h"
#include "params/matvec_team.h"

namespace hearth {
namespace {

// No device guarantees more subgroups per workgroup.
constexpr uint32_t kMostSubgroups = 32;

// Lanes of matvec_team for which a multiprocessor has room, more or less.
constexpr uint32_t kResidentLanes = 1024;

// How many rows of x an invocation of matmul_invocation computes. Decoding weights takes a CPU as
// long as multiplying 2.4 rows by them (measured, 32000 x 288 weights of Q8_0). There are few
// sizes, so that few kernels have to be compiled.
uint32_t cpu_rows_at_once(uint32_t rows) {
  constexpr uint32_t kSizes[] = {1, 2, 3, 4, 6, 8, 12, 16};
  return *std::ranges::min_element(
      kSizes, {}, [&](uint32_t size) { return divide_up(rows, size) * (5 * size + 12); });
}

// One invocation per row of the matrix: no barrier, no reduction. Small matrices get small
// workgroups, so that there are some for every core.
MatmulPlan choose_cpu(const DeviceCaps& caps, const MatmulShape& shape, uint32_t rows_at_once) {
  constexpr uint32_t kGroups = 16;
  uint32_t lanes = group_size(caps, 64);
  while (lanes > caps.subgroup_size && divide_up(shape.outputs, lanes) < kGroups) lanes /= 2;
  return {.multiply = {
              .pipeline = {.kernel = variant("matmul_invocation", shape.format),
                           .constants = params::MatmulInvocationConstants{.kWorkgroupSize = lanes,
                                                                          .kRows = rows_at_once}},
              .groups = {.x = divide_up(shape.outputs, lanes),
                         .y = divide_up(shape.rows, rows_at_once)}}};
}

// What a lane of matvec_float loads at a time: `ahead` chunks of 16 bytes from each of `outputs`
// rows.
struct FloatStep {
  uint32_t outputs, ahead;
};

// With few vectors, few outputs per subgroup give many subgroups, whose loads keep the memory busy.
// With more, each weight is used more often, so registers go to sums.
FloatStep float_step(const FloatTuning& tuning, const MatmulShape& shape, uint32_t rows_at_once) {
  const bool floats = format_info(shape.format).is_float();
  if (rows_at_once > 2)
    return {floats ? tuning.more_float_outputs : tuning.more_quantized_outputs, 1};
  const bool many_outputs = shape.outputs >= 8192;
  if (!floats) return {many_outputs ? tuning.quantized_outputs : 1, 1};
  return many_outputs ? FloatStep{tuning.float_outputs, 1} : FloatStep{1, 4};
}

// Float arithmetic, one subgroup per row of weights.
MatmulPlan choose_float(const DeviceCaps& caps, const MatmulShape& shape, uint32_t rows_at_once) {
  const uint32_t lanes = group_size(
      caps, std::min(rows_at_once == 1 ? 256u : 128u, kMostSubgroups * caps.subgroup_size));
  const auto [outputs, ahead] = float_step(tuning_profile(caps).matvec, shape, rows_at_once);
  return {
      .multiply = {.pipeline = {.kernel = variant("matvec_float", shape.format),
                                .constants = params::MatvecFloatConstants{.kWorkgroupSize = lanes,
                                                                          .kRows = rows_at_once,
                                                                          .kOutputs = outputs,
                                                                          .kAhead = ahead},
                                .subgroup_size = caps.subgroup_size},
                   .groups = {.x = divide_up(shape.outputs, outputs * lanes / caps.subgroup_size),
                              .y = divide_up(shape.rows, rows_at_once)}}};
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

// One vector in float arithmetic. Empty if a lane's part of a row would be too large.
std::optional<MatmulPlan> choose_team(const DeviceCaps& caps, const MatmulShape& shape) {
  const TeamTuning tuning = tuning_profile(caps).team;
  const uint32_t chunks = shape.inputs / (shape.format == WeightFormat::kF32 ? 4 : 8);
  const auto fit = [&](uint32_t lanes) {
    return group_size(caps, std::min(lanes, kMostSubgroups * caps.subgroup_size));
  };
  const auto outputs_of = [&](const TeamStep& team) {
    return std::bit_floor(std::min(
        {std::max(tuning.loads / team.lane_chunks, 1u), caps.subgroup_size, shape.outputs}));
  };
  uint32_t most = fit(caps.features.ordered_groups ? tuning.chained_lanes : tuning.lanes);
  TeamStep team = team_step(caps, chunks, most);
  if (team.lane_chunks > tuning.loads) return std::nullopt;
  const uint32_t device_groups = multiprocessors(caps) * (kResidentLanes / most);
  uint32_t rounds =
      divide_up(shape.outputs, outputs_of(team) * (most / team.lanes) * device_groups);
  if (rounds > tuning.most_rounds) {
    most = std::min(most, fit(std::max(chunks / 2, tuning.lanes)));
    team = team_step(caps, chunks, most);
    rounds = tuning.small_rounds;
  }
  const uint32_t outputs = outputs_of(team), teams = most / team.lanes;
  const uint32_t lanes = team.lanes * teams;
  return MatmulPlan{
      .multiply = {
          .pipeline = {.kernel = variant("matvec_team", shape.format),
                       .constants =
                           params::MatvecTeamConstants{.kWorkgroupSize = lanes,
                                                       .kOutputs = outputs,
                                                       .kInputs = shape.inputs,
                                                       .kSubgroups = lanes / caps.subgroup_size,
                                                       .kRounds = rounds,
                                                       .kTeams = teams},
                       .subgroup_size = caps.subgroup_size},
          .groups = {.x = divide_up(shape.outputs, outputs * teams * rounds)}}};
}

// Whether a matrix of F32 weights, a router's, is so small that every row may read it again: from
// a cache, in more workgroups and with less waiting than if rows shared what they read.
bool reads_few_bytes(const MatmulShape& shape) {
  constexpr uint64_t kFewBytes = 24 << 20;
  constexpr uint32_t kFewOutputs = 1024;
  return shape.format == WeightFormat::kF32 && shape.outputs <= kFewOutputs &&
         uint64_t{shape.rows} * shape.outputs * shape.inputs * 4 <= kFewBytes;
}

// The most pieces of 32 elements of x that a lane of matvec_integer keeps in registers.
constexpr uint32_t kMostPieces = 4;

// The most lanes per workgroup of matvec_integer. Devices with small subgroups have few of them.
uint32_t integer_lanes(const DeviceCaps& caps) {
  return group_size(caps,
                    std::min(tuning_profile(caps).integer.most_lanes, 16 * caps.subgroup_size));
}

// The most lanes that can divide a row of weights among them.
uint32_t integer_lanes(const DeviceCaps& caps, uint32_t inputs) {
  return std::min(integer_lanes(caps),
                  divide_up(inputs / kPieceWeights, caps.subgroup_size) * caps.subgroup_size);
}

// Whether the lanes of one workgroup can divide a row of weights among them. Eight lanes of a
// subgroup find the scale of a piece of x together.
bool integer_fits(const DeviceCaps& caps, uint32_t inputs) {
  constexpr uint32_t kLaneSharedBytes = 64;  // includes room for sums
  const uint32_t lanes = integer_lanes(caps, inputs);
  return caps.subgroup_size >= 8 && inputs / kPieceWeights <= lanes * kMostPieces &&
         lanes * kLaneSharedBytes <= caps.limits.max_shared_bytes;
}

// A workgroup converts x to integers, so it should use them for many outputs, in several teams if a
// row needs few lanes. But there must be workgroups for all multiprocessors, and two small ones on
// each, so that one loads while the other waits.
MatmulPlan choose_integer(const DeviceCaps& caps, const MatmulShape& shape, uint32_t rows) {
  constexpr uint32_t kMostRows = 4;
  const uint32_t rows_at_once = std::bit_ceil(std::min(rows, kMostRows));
  const uint32_t row_pieces = shape.inputs / kPieceWeights;
  const uint32_t pieces = divide_up(row_pieces, integer_lanes(caps, shape.inputs));
  // No more lanes than needed with that number of pieces each.
  const uint32_t team =
      divide_up(divide_up(row_pieces, pieces), caps.subgroup_size) * caps.subgroup_size;
  const IntegerTuning tuning = tuning_profile(caps).integer;
  constexpr uint32_t kMostTeams = 8;
  const uint32_t teams = std::bit_floor(
      std::clamp(std::min(tuning.group_lanes, integer_lanes(caps)) / team, 1u, kMostTeams));
  // A multiprocessor has registers for only one large workgroup, which then loads more at a time.
  const bool large = team > tuning.group_lanes;
  const uint32_t resident = large ? 1 : 2;
  const uint32_t all_teams = teams * multiprocessors(caps) * resident;
  const uint32_t most_rows = large ? 1 : 2;
  const uint32_t all_outputs = shape.outputs + shape.sibling_outputs;
  uint32_t outputs = std::max(1u, (rows_at_once > most_rows ? 2 : 4) / pieces);
  // Pieces of Q4_0 have so few words that there are registers for more, if enough rounds are left.
  if (tuning.wide_q4_0 && shape.format == WeightFormat::kQ4_0 && rows_at_once == 1 &&
      outputs == 4 && all_outputs > 16 * all_teams)
    outputs = 8;
  outputs = std::bit_floor(std::min(outputs, shape.outputs));
  const uint32_t rounds =
      std::clamp(divide_up(all_outputs, outputs * all_teams), 1u, tuning.most_rounds);
  const uint32_t lanes = team * teams;
  return {.multiply = {.pipeline = {.kernel = variant("matvec_integer", shape.format),
                                    .constants =
                                        params::MatvecIntegerConstants{
                                            .kWorkgroupSize = lanes,
                                            .kRows = rows_at_once,
                                            .kOutputs = outputs,
                                            .kPieces = pieces,
                                            .kSubgroups = lanes / caps.subgroup_size,
                                            .kRounds = rounds,
                                            .kTeams = teams},
                                    .subgroup_size = caps.subgroup_size},
                       .groups = {.x = divide_up(shape.outputs, outputs * teams * rounds),
                                  .y = divide_up(shape.rows, rows_at_once)}}};
}

}  // namespace

MatmulPlan choose_matmul(const DeviceCaps& caps, const MatmulShape& shape, bool deterministic) {
  // A row's result depends on the kernel and its constants, so a fixed shape makes it the same
  // alone and in a batch.
  constexpr uint32_t kDeterministicRows = 4;
  if (is_cpu(caps))
    return choose_cpu(caps, shape,
                      deterministic ? kDeterministicRows : cpu_rows_at_once(shape.rows));

  const bool quantized = !format_info(shape.format).is_float();
  const uint32_t rows_at_once =
      deterministic ? kDeterministicRows : std::clamp(shape.rows, 1u, kMaxMatvecRows);

  if (shape.rows > 1 && !deterministic) {
    if (const std::optional<MatmulPlan> few = choose_few_rows(caps, shape)) return *few;
  }
  if (shape.rows > 1 && !deterministic && reads_few_bytes(shape)) {
    if (std::optional<MatmulPlan> plan = choose_team(caps, shape)) {
      plan->multiply.groups.y = shape.rows;
      plan->can_norm = true;
      return *plan;
    }
  }
  // Matrix units are faster from two rows on, although most of the tile is empty; compared with
  // integer dot products, from three rows on.
  const bool integer = quantized && caps.features.integer_dot && integer_fits(caps, shape.inputs);
  const bool matrices = matrix_units(caps, shape.format);
  const uint32_t matvec_rows = !matrices ? kMaxMatvecRows : integer ? 2 : 1;
  if (shape.rows > matvec_rows && !deterministic) return choose_tile(caps, shape);
  const bool one = shape.rows == 1 && !deterministic;
  std::optional<MatmulPlan> teams;
  if (integer) {
    teams = choose_integer(caps, shape, rows_at_once);
  } else if (one && !quantized) {
    teams = choose_team(caps, shape);
  }
  MatmulPlan plan = teams ? *teams : choose_float(caps, shape, rows_at_once);
  if (!one) return plan;
  plan.can_norm = teams.has_value();
  plan.can_gate = plan.multiply.pipeline.constants["kOutputs"] % 2 == 0;
  return plan;
}

}  // namespace hearth
