#include <algorithm>
#include <bit>
#include <span>

#include <fmt/format.h>

#include "engine/ops/kernel_choice.h"
#include "params/split_rows.h"

namespace hearth {
namespace {

// record_matmul puts in what the product really ends with.
constexpr uint32_t kNoEpilogue = 0;

// Constants of matvec_float and of matmul_coopmat.
constexpr size_t kMatvecOutputs = 3, kMatvecNorm = 5, kMatvecGate = 6, kMatvecEmit = 7;
constexpr size_t kCoopmatGate = 14;

std::string variant(std::string_view kernel, WeightFormat format) {
  return fmt::format("{}.{}", kernel, format_info(format).header);
}

// An invocation a row of the matrix: no barrier, no reduction. Few rows of x at a time, so that
// their sums stay in registers.
MatmulPlan choose_cpu(const DeviceCaps& caps, const MatmulShape& shape, uint32_t rows_at_once) {
  const uint32_t lanes = group_size(caps, 64);
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
  // No device promises more than 32 subgroups in a group.
  const uint32_t most = std::min(256u, 32 * caps.subgroup_size);
  const uint32_t lanes = group_size(caps, rows_at_once == 1 ? most : 128);
  const auto [outputs, ahead] = float_step(caps, shape, rows_at_once);
  return {.pipeline = {.kernel = variant("matvec_float", shape.format),
                       .constants = {lanes, kNoEpilogue, rows_at_once, outputs, ahead, 0, 0, 0},
                       .subgroup_size = caps.subgroup_size},
          .groups = {.x = divide_up(shape.outputs, outputs * lanes / caps.subgroup_size),
                     .y = divide_up(shape.rows, rows_at_once)}};
}

// Scratch memory: x in the form the kernel wants, then parts of the sums.
void set_scratch(MatmulPlan& plan, const DeviceCaps& caps, const MatmulShape& shape,
                 uint64_t part_bytes) {
  const uint32_t lanes = group_size(caps, 128);
  if (plan.form != RowForm::kFloats) {
    const bool halves = plan.form == RowForm::kHalves;
    plan.prepare = KernelPlan{
        .pipeline = {.kernel = halves ? "half_rows" : "split_rows", .constants = {lanes}},
        .groups = halves ? GroupCount{.x = divide_up(shape.inputs / 8, lanes), .y = shape.rows}
                         : GroupCount{
                               .x = divide_up(shape.rows * (shape.inputs / kPieceWeights), lanes)}};
    plan.prepared_bytes = row_form_bytes(plan.form, shape.rows, shape.inputs);
  }
  plan.part_bytes = part_bytes;
  plan.scratch_bytes = plan.prepared_bytes + part_bytes;
}

// The most pieces of 32 weights that a lane of matvec_integer loads at once: more would leave few
// registers to x, fewer too little on its way.
constexpr uint32_t kPiecesAhead = 4;

uint32_t integer_lanes(const DeviceCaps& caps, uint32_t inputs) {
  // Devices with small subgroups have few of them in a group.
  return std::min(group_size(caps, std::min(512u, 16 * caps.subgroup_size)),
                  divide_up(inputs / kPieceWeights, caps.subgroup_size) * caps.subgroup_size);
}

// Whether the lanes of one group can share a row of weights out.
bool integer_fits(const DeviceCaps& caps, uint32_t inputs) {
  return inputs / kPieceWeights <= integer_lanes(caps, inputs) * kPiecesAhead;
}

MatmulPlan choose_integer(const DeviceCaps& caps, const MatmulShape& shape, uint32_t rows_at_once) {
  const uint32_t row_pieces = shape.inputs / kPieceWeights;
  const uint32_t pieces = divide_up(row_pieces, integer_lanes(caps, shape.inputs));
  // As few lanes as that number of pieces each needs.
  const uint32_t lanes =
      divide_up(divide_up(row_pieces, pieces), caps.subgroup_size) * caps.subgroup_size;
  const uint32_t outputs = std::max(1u, (rows_at_once > 2 ? 2 : kPiecesAhead) / pieces);
  MatmulPlan plan{.form = RowForm::kSplit,
                  .multiply = {.pipeline = {.kernel = variant("matvec_integer", shape.format),
                                            .constants = {lanes, kNoEpilogue, rows_at_once, outputs,
                                                          pieces, lanes / caps.subgroup_size},
                                            .subgroup_size = caps.subgroup_size},
                               .groups = {.x = divide_up(shape.outputs, outputs),
                                          .y = divide_up(shape.rows, rows_at_once)}}};
  // Its groups are so short that to arrive in a chain takes a good part of their time. Measured on
  // an H200: ahead with llama-1b's shapes, a sixth behind with llama-8b's.
  constexpr uint32_t kMostChained = 1000;
  plan.multiply.pipeline.chains = plan.multiply.groups.x * plan.multiply.groups.y <= kMostChained;
  set_scratch(plan, caps, shape, 0);
  return plan;
}

// A tile of sums that a group computes, and how its subgroups or lanes share it.
struct Tile {
  uint32_t most_rows;  // of a product that it is for
  uint32_t rows, outputs, inputs;
  uint32_t part_rows, part_outputs;  // of a subgroup (coopmat) or of a lane (scalar)
  uint32_t wanted_groups;            // to fill a large GPU: k is split where there are fewer tiles
  uint32_t ahead = 1;                // coopmat: steps whose operands are on their way
  uint32_t round = 0;                // coopmat: steps written out one after the other
};
constexpr uint32_t kAnyRows = ~0u;

// Up to 128 rows a tile holds them all, so that the weights are read once; beyond, large tiles do
// much work for each byte. Measured on an H200: docs/measurements.md.
constexpr Tile kFloatTiles[] = {
    {16, 16, 64, 64, 16, 16, 512, 2},         {32, 32, 128, 64, 32, 16, 256, 2},
    {48, 48, 256, 64, 48, 32, 128, 2},        {64, 64, 256, 64, 32, 64, 128, 1},
    {96, 96, 64, 64, 48, 32, 256, 2},         {128, 128, 128, 64, 64, 32, 128, 1},
    {192, 96, 128, 32, 48, 64, 256, 2},       {512, 128, 128, 32, 64, 64, 256, 2},
    {kAnyRows, 128, 128, 32, 64, 64, 256, 1},
};
// Decoding takes registers, and there are fewer bytes to wait for.
constexpr Tile kQuantizedTiles[] = {
    {16, 16, 64, 64, 16, 16, 512, 2},   {32, 32, 128, 64, 32, 16, 256, 1},
    {48, 48, 64, 64, 48, 16, 256, 2},   {64, 64, 64, 64, 64, 16, 256, 2},
    {96, 96, 64, 64, 48, 32, 256, 1},   {128, 128, 128, 32, 64, 64, 256, 1},
    {192, 96, 128, 32, 48, 64, 256, 1}, {kAnyRows, 128, 128, 32, 64, 64, 256, 1},
};
// For many rows, where k is whole rounds.
constexpr Tile kWideFloatTile = {kAnyRows, 256, 128, 32, 64, 64, 128, 1, 8};
constexpr Tile kWideQuantizedTile = {kAnyRows, 256, 128, 32, 64, 64, 128, 1, 2};
constexpr Tile kScalarTiles[] = {
    {16, 16, 64, 32, 4, 4, 512},
    {32, 32, 64, 32, 4, 4, 512},
    {kAnyRows, 64, 64, 32, 4, 4, 256},
};

uint32_t tile_parts(const Tile& tile) {
  return tile.rows / tile.part_rows * (tile.outputs / tile.part_outputs);
}

uint32_t tile_lanes(const DeviceCaps& caps, const Tile& tile, bool coopmat) {
  return tile_parts(tile) * (coopmat ? caps.subgroup_size : 1);
}

// What the kernels declare as shared.
uint32_t tile_shared_bytes(const Tile& tile, const std::optional<CoopmatShape>& fragment) {
  if (!fragment) return (tile.rows + tile.outputs) * (tile.inputs / 4 + 2) * 16;
  const uint32_t operands = (tile.rows + tile.outputs) * (tile.inputs / 8 + 1) * 16;
  return std::max(operands, tile_parts(tile) * fragment->m * fragment->n * 4);
}

bool fits(const DeviceCaps& caps, const Tile& tile, const std::optional<CoopmatShape>& fragment) {
  return tile_lanes(caps, tile, fragment.has_value()) <= caps.limits.max_group_invocations &&
         tile_shared_bytes(tile, fragment) <= caps.limits.max_shared_bytes;
}

// The first that is for so many rows, of those the device has room for; else the last of those.
const Tile& tile_for(const DeviceCaps& caps, std::span<const Tile> tiles,
                     const std::optional<CoopmatShape>& fragment, uint32_t rows) {
  const Tile* best = &tiles.front();
  for (const Tile& tile : tiles) {
    if (!fits(caps, tile, fragment)) continue;
    best = &tile;
    if (rows <= tile.most_rows) break;
  }
  return *best;
}

// Few tiles leave a large GPU idle: then the groups of a tile share k between them.
uint32_t splits_for(uint32_t wanted_groups, uint32_t tiles, uint32_t steps) {
  constexpr uint32_t kMostSplits = 16, kFewestSteps = 4;
  return std::clamp(wanted_groups / tiles, 1u, std::clamp(steps / kFewestSteps, 1u, kMostSplits));
}

uint32_t splits_for(const Tile& tile, const MatmulShape& shape) {
  return splits_for(tile.wanted_groups,
                    divide_up(shape.rows, tile.rows) * divide_up(shape.outputs, tile.outputs),
                    divide_up(shape.inputs, tile.inputs));
}

// Whether a wide tile can compute this, and is faster though it may pad more rows: on an H200 full
// ones take 10 to 14 % less time at 2,048 rows (docs/measurements.md).
bool is_wide_better(const DeviceCaps& caps, const Tile& wide, const Tile& narrow,
                    const CoopmatShape& fragment, const MatmulShape& shape) {
  constexpr uint32_t kFewestRows = 193;
  if (shape.rows < kFewestRows || !fits(caps, wide, fragment)) return false;
  if (wide.inputs % (2 * fragment.k) != 0) return false;
  if (shape.inputs % (wide.inputs * wide.round * splits_for(wide, shape)) != 0) return false;
  const auto padded = [&](const Tile& tile) {
    return divide_up(shape.rows, tile.rows) * tile.rows;
  };
  return padded(wide) * 9 <= padded(narrow) * 10;
}

// Matrix units take f16, which is no loss for weights of 16 bits and fewer. Whoever keeps weights
// in F32 wants what that is good for.
std::optional<CoopmatShape> matrix_units(const DeviceCaps& caps, WeightFormat format) {
  return format == WeightFormat::kF32 ? std::nullopt : coopmat_shape(caps);
}

MatmulPlan choose_tile(const DeviceCaps& caps, const MatmulShape& shape) {
  const std::optional<CoopmatShape> fragment = matrix_units(caps, shape.format);
  const bool is_float = format_info(shape.format).is_float();
  const std::span<const Tile> tiles = !fragment  ? std::span<const Tile>(kScalarTiles)
                                      : is_float ? std::span<const Tile>(kFloatTiles)
                                                 : std::span<const Tile>(kQuantizedTiles);
  const Tile& narrow = tile_for(caps, tiles, fragment, shape.rows);
  const Tile& wide = is_float ? kWideFloatTile : kWideQuantizedTile;
  const Tile& tile =
      fragment && is_wide_better(caps, wide, narrow, *fragment, shape) ? wide : narrow;
  const uint32_t lanes = tile_lanes(caps, tile, fragment.has_value());
  const uint32_t down = divide_up(shape.rows, tile.rows);
  const uint32_t across = divide_up(shape.outputs, tile.outputs);
  const uint32_t splits = splits_for(tile, shape);

  MatmulPlan plan;
  PipelineInfo& info = plan.multiply.pipeline;
  info.kernel = variant(fragment ? "matmul_coopmat" : "matmul_tile", shape.format);
  info.constants = {lanes,       kNoEpilogue, tile.rows,      tile.outputs,
                    tile.inputs, splits,      tile.part_rows, tile.part_outputs};
  if (fragment) {
    plan.form = RowForm::kHalves;
    // Small fragments are made of plain instructions, which had better be few.
    const uint32_t unroll = fragment->k < 16 ? 1 : tile.inputs / fragment->k;
    info.constants.insert(info.constants.end(),
                          {fragment->m, fragment->n, fragment->k, tile_parts(tile), tile.ahead,
                           unroll, 0, 0, tile.round});
    info.subgroup_size = caps.subgroup_size;
    if (splits == 1 && tile.outputs / tile.part_outputs % 2 == 0) plan.gate_constant = kCoopmatGate;
  }
  plan.multiply.groups = {.x = down, .y = across, .z = splits};
  uint64_t part_bytes = 0;
  if (splits > 1) {
    const uint32_t reduce_lanes = group_size(caps, 256);
    plan.reduce = KernelPlan{
        .pipeline = {.kernel = "matmul_reduce",
                     .constants = {reduce_lanes, kNoEpilogue, splits, tile.rows, tile.outputs}},
        .groups = {.x = divide_up(shape.outputs, 4 * reduce_lanes), .y = shape.rows}};
    plan.parts = {.splits = splits, .rows = down * tile.rows, .outputs = across * tile.outputs};
    part_bytes = uint64_t{splits} * down * tile.rows * across * tile.outputs * 4;
  }
  set_scratch(plan, caps, shape, part_bytes);
  return plan;
}

}  // namespace

std::optional<CoopmatShape> coopmat_shape(const DeviceCaps& caps) {
  std::optional<CoopmatShape> best;
  if (!caps.features.coopmat || !caps.features.float16) return best;
  for (const CoopmatShape& shape : caps.coopmat_shapes) {
    const bool fits = shape.a == ScalarType::kF16 && shape.b == ScalarType::kF16 &&
                      shape.c == ScalarType::kF32 && shape.result == ScalarType::kF32 &&
                      16 % shape.m == 0 && 16 % shape.n == 0 && 32 % shape.k == 0;
    if (fits && (!best || shape.m * shape.n * shape.k > best->m * best->n * best->k)) best = shape;
  }
  return best;
}

MatmulPlan choose_matmul(const DeviceCaps& caps, const MatmulShape& shape, bool deterministic) {
  // A row's result depends on the kernel and its constants, so one fixed shape makes it the same
  // alone and in a batch.
  constexpr uint32_t kDeterministicRows = 4;
  const bool quantized = !format_info(shape.format).is_float();
  const uint32_t most = is_cpu(caps) ? 4 : kMaxMatvecRows;
  const uint32_t rows_at_once =
      deterministic ? kDeterministicRows : std::clamp(shape.rows, 1u, most);
  if (is_cpu(caps)) return choose_cpu(caps, shape, rows_at_once);

  // Matrix units are ahead from two rows on, though most of their tile is empty; of integer dot
  // products from four on.
  const bool integer = quantized && caps.features.integer_dot && integer_fits(caps, shape.inputs);
  const bool matrices = matrix_units(caps, shape.format).has_value();
  const uint32_t matvec_rows = !matrices ? kMaxMatvecRows : integer ? 3 : 1;
  if (shape.rows > matvec_rows && !deterministic) return choose_tile(caps, shape);
  if (integer) return choose_integer(caps, shape, std::min(rows_at_once, 4u));
  MatmulPlan plan{.multiply = choose_float(caps, shape, rows_at_once)};
  const std::vector<uint32_t>& constants = plan.multiply.pipeline.constants;
  if (shape.rows > 1 || deterministic) return plan;
  plan.norm_constant = kMatvecNorm;
  plan.emit_constant = kMatvecEmit;
  if (constants[kMatvecOutputs] % 2 == 0) plan.gate_constant = kMatvecGate;
  return plan;
}

}  // namespace hearth
