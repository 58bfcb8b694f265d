#include <algorithm>
#include <bit>

#include "engine/ops/choose_tile.h"
#include "engine/ops/kernel_choice.h"

namespace hearth {
namespace {

// Constants of matvec_float and of matvec_integer.
constexpr size_t kMatvecOutputs = 3;
constexpr size_t kFloatFinish = 5, kFloatGate = 6, kFloatBegin = 7;
constexpr size_t kIntegerNorm = 7, kIntegerGate = 8;

// How many rows of x an invocation of matmul_invocation takes. Decoding its weights takes a CPU as
// long as multiplying 2.4 rows by them (measured, 32000 x 288 weights of Q8_0); few sizes, so that
// few kernels have to be compiled.
uint32_t cpu_rows_at_once(uint32_t rows) {
  constexpr uint32_t kSizes[] = {1, 2, 3, 4, 6, 8, 12, 16};
  return *std::ranges::min_element(
      kSizes, {}, [&](uint32_t size) { return divide_up(rows, size) * (5 * size + 12); });
}

// An invocation a row of the matrix: no barrier, no reduction. Small matrices get small groups, so
// that there are some for every core.
MatmulPlan choose_cpu(const DeviceCaps& caps, const MatmulShape& shape, uint32_t rows_at_once) {
  constexpr uint32_t kGroups = 16;
  uint32_t lanes = group_size(caps, 64);
  while (lanes > caps.subgroup_size && divide_up(shape.outputs, lanes) < kGroups) lanes /= 2;
  return {.multiply = {.pipeline = {.kernel = variant("matmul_invocation", shape.format),
                                    .constants = {lanes, kNoEpilogue, rows_at_once}},
                       .groups = {.x = divide_up(shape.outputs, lanes),
                                  .y = divide_up(shape.rows, rows_at_once)}}};
}

// What a lane of matvec_float loads at once: `ahead` chunks of 16 bytes of each of `outputs` rows.
struct FloatStep {
  uint32_t outputs, ahead;
};

// Few vectors: few outputs a subgroup make many subgroups, and the loads of some steps keep the
// memory busy. More: each weight is used more often, so registers go to sums. In a chain
// (runtime/chain.h) the loads of the first step are under way while the kernel waits for x, so
// there are more of them. Measured on an H200.
FloatStep float_step(const DeviceCaps& caps, const MatmulShape& shape, uint32_t rows_at_once) {
  if (rows_at_once > 2) return {4, 1};
  const bool many_outputs = shape.outputs >= 8192;
  if (!format_info(shape.format).is_float()) return {many_outputs ? 2u : 1u, 1};
  if (rows_at_once > 1 || !caps.features.ordered_groups)
    return many_outputs ? FloatStep{2, 1} : FloatStep{1, 4};
  if (many_outputs) return {4, 2};
  const uint32_t chunk_weights = shape.format == WeightFormat::kF32 ? 4 : 8;
  const uint32_t lane_chunks = shape.inputs / chunk_weights / caps.subgroup_size;
  // With few rows there are few subgroups, which then must load more each.
  if (shape.outputs <= 2048 && lane_chunks >= 32) return {1, 16};
  return {2, std::clamp(std::bit_floor(lane_chunks), 1u, 8u)};
}

// Float arithmetic.
KernelPlan choose_float(const DeviceCaps& caps, const MatmulShape& shape, uint32_t rows_at_once) {
  // Large groups are few, so that the next kernel has fewer to wait for; but where there is much to
  // do, or much for each lane, they leave more of the device idle in the end (measured on an H200).
  // No device promises more than 32 subgroups in a group.
  const bool small = shape.inputs <= 2048 && shape.outputs <= 16384;
  const uint32_t most = std::min(small ? 512u : 256u, 32 * caps.subgroup_size);
  const uint32_t lanes = group_size(caps, rows_at_once == 1 ? most : 128);
  const auto [outputs, ahead] = float_step(caps, shape, rows_at_once);
  return {.pipeline = {.kernel = variant("matvec_float", shape.format),
                       .constants = {lanes, kNoEpilogue, rows_at_once, outputs, ahead, 0, 0, 0},
                       .subgroup_size = caps.subgroup_size},
          .groups = {.x = divide_up(shape.outputs, outputs * lanes / caps.subgroup_size),
                     .y = divide_up(shape.rows, rows_at_once)}};
}

// The most pieces of 32 elements of x that a lane of matvec_integer keeps in registers.
constexpr uint32_t kMostPieces = 4;

// The most lanes of a group of matvec_integer. Devices with small subgroups have few of them in
// one.
uint32_t integer_lanes(const DeviceCaps& caps) {
  return group_size(caps, std::min(512u, 16 * caps.subgroup_size));
}

// The most lanes that can share a row of weights out.
uint32_t integer_lanes(const DeviceCaps& caps, uint32_t inputs) {
  return std::min(integer_lanes(caps),
                  divide_up(inputs / kPieceWeights, caps.subgroup_size) * caps.subgroup_size);
}

// Whether the lanes of one group can share a row of weights out; eight of a subgroup find the scale
// of a piece of x.
bool integer_fits(const DeviceCaps& caps, uint32_t inputs) {
  constexpr uint32_t kLaneSharedBytes = 64;  // and to spare for sums
  const uint32_t lanes = integer_lanes(caps, inputs);
  return caps.subgroup_size >= 8 && inputs / kPieceWeights <= lanes * kMostPieces &&
         lanes * kLaneSharedBytes <= caps.limits.max_shared_bytes;
}

// A group makes integers of x, so it had better use them for many outputs, in several teams if a
// row takes few lanes; but there must be groups for all multiprocessors, two small ones on each so
// that one loads while another waits. Numbers as measured on an H200.
MatmulPlan choose_integer(const DeviceCaps& caps, const MatmulShape& shape, uint32_t rows) {
  constexpr uint32_t kMostRows = 4;
  const uint32_t rows_at_once = std::bit_ceil(std::min(rows, kMostRows));
  const uint32_t row_pieces = shape.inputs / kPieceWeights;
  const uint32_t pieces = divide_up(row_pieces, integer_lanes(caps, shape.inputs));
  // As few lanes as that number of pieces each needs.
  const uint32_t team =
      divide_up(divide_up(row_pieces, pieces), caps.subgroup_size) * caps.subgroup_size;
  constexpr uint32_t kGroupLanes = 256, kMostTeams = 8;
  const uint32_t teams =
      std::bit_floor(std::clamp(std::min(kGroupLanes, integer_lanes(caps)) / team, 1u, kMostTeams));
  // A multiprocessor has registers for one large group, which then loads much at once.
  const bool large = team > kGroupLanes;
  const uint32_t resident = large ? 1 : 2;
  const uint32_t all_teams = teams * multiprocessors(caps) * resident;
  const uint32_t most_rows = large ? 1 : 2;
  const uint32_t all_outputs = shape.outputs + shape.beside;
  uint32_t outputs = std::max(1u, (rows_at_once > most_rows ? 2 : 4) / pieces);
  // Pieces of Q4_0 are so few words that there are registers for more, where that leaves rounds.
  if (shape.format == WeightFormat::kQ4_0 && rows_at_once == 1 && outputs == 4 &&
      all_outputs > 16 * all_teams)
    outputs = 8;
  constexpr uint32_t kMostRounds = 16;
  const uint32_t rounds = std::clamp(divide_up(all_outputs, outputs * all_teams), 1u, kMostRounds);
  const uint32_t lanes = team * teams;
  return {.multiply = {.pipeline = {.kernel = variant("matvec_integer", shape.format),
                                    .constants = {lanes, kNoEpilogue, rows_at_once, outputs, pieces,
                                                  lanes / caps.subgroup_size, rounds, 0, 0, teams},
                                    .subgroup_size = caps.subgroup_size},
                       .groups = {.x = divide_up(shape.outputs, outputs * teams * rounds),
                                  .y = divide_up(shape.rows, rows_at_once)}}};
}

}  // namespace

MatmulPlan choose_matmul(const DeviceCaps& caps, const MatmulShape& shape, bool deterministic) {
  // A row's result depends on the kernel and its constants, so one fixed shape makes it the same
  // alone and in a batch.
  constexpr uint32_t kDeterministicRows = 4;
  if (is_cpu(caps))
    return choose_cpu(caps, shape,
                      deterministic ? kDeterministicRows : cpu_rows_at_once(shape.rows));

  const bool quantized = !format_info(shape.format).is_float();
  const uint32_t rows_at_once =
      deterministic ? kDeterministicRows : std::clamp(shape.rows, 1u, kMaxMatvecRows);

  // Matrix units are ahead from two rows on, though most of their tile is empty; of integer dot
  // products from three on.
  const bool integer = quantized && caps.features.integer_dot && integer_fits(caps, shape.inputs);
  const bool matrices = matrix_units(caps, shape.format);
  const uint32_t matvec_rows = !matrices ? kMaxMatvecRows : integer ? 2 : 1;
  if (shape.rows > matvec_rows && !deterministic) return choose_tile(caps, shape);
  MatmulPlan plan = integer ? choose_integer(caps, shape, rows_at_once)
                            : MatmulPlan{.multiply = choose_float(caps, shape, rows_at_once)};
  if (shape.rows > 1 || deterministic) return plan;
  if (integer) {
    plan.norm_constant = kIntegerNorm;
  } else {
    plan.finish_constant = kFloatFinish;
    plan.begin_constant = kFloatBegin;
  }
  if (plan.multiply.pipeline.constants[kMatvecOutputs] % 2 == 0)
    plan.gate_constant = integer ? kIntegerGate : kFloatGate;
  return plan;
}

}  // namespace hearth
