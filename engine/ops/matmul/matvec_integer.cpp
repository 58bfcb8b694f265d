// matvec_integer: few vectors and quantized weights, in packed 8-bit dot products.
#include "params/matvec_integer.h"

#include <algorithm>
#include <bit>

#include "engine/ops/matmul/family.h"
#include "engine/ops/tuning/profile.h"

namespace hearth {
namespace {

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

bool supports_matvec_integer(const MatmulRequest& request) {
  return integer_products(request.caps, request.shape);
}

// A workgroup converts x to integers, so it should use them for many outputs, in several teams if a
// row needs few lanes. But there must be workgroups for all multiprocessors, and several small ones
// on each, so that one loads while another waits.
MatmulPlan plan_matvec_integer(const MatmulRequest& request) {
  constexpr uint32_t kMostRows = 4;
  const auto& [caps, shape, deterministic] = request;
  const uint32_t rows_at_once = std::bit_ceil(std::min(matvec_rows(request), kMostRows));
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
  const uint32_t resident = large ? 1 : tuning.resident_groups;
  const uint32_t all_teams = teams * multiprocessors(caps) * resident;
  const bool few_rows = rows_at_once <= (large ? 1 : tuning.few_rows);
  const uint32_t all_outputs = shape.outputs + shape.sibling_outputs;
  uint32_t outputs =
      std::max(1u, (few_rows ? tuning.few_rows_pieces : tuning.more_rows_pieces) / pieces);
  // Pieces of Q4_0 have so few words that there are registers for more, if enough rounds are left.
  if (tuning.wide_q4_0_outputs > 0 && shape.format == WeightFormat::kQ4_0 && rows_at_once == 1 &&
      pieces == 1 && all_outputs > tuning.wide_q4_0_outputs * all_teams)
    outputs *= 2;
  outputs = std::bit_floor(std::min(outputs, shape.outputs));
  const uint32_t rounds =
      std::clamp(divide_up(all_outputs, outputs * all_teams), 1u, tuning.most_rounds);
  const uint32_t lanes = team * teams;
  const bool one = shape.rows == 1 && !deterministic;
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
                                  .y = divide_up(shape.rows, rows_at_once)}},
          .can_norm = one,
          .can_gate = one && outputs % 2 == 0};
}

}  // namespace

bool integer_products(const DeviceCaps& caps, const MatmulShape& shape) {
  return !format_info(shape.format).is_float() && caps.features.integer_dot &&
         integer_fits(caps, shape.inputs);
}

const MatmulFamily kMatvecInteger{"matvec_integer", supports_matvec_integer, plan_matvec_integer};

}  // namespace hearth
