#include "engine/ops/choose_tile.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>
#include <vector>

#include <fmt/format.h>

namespace hearth {
namespace {

constexpr size_t kCoopmatGate = 14;  // constant of matmul_coopmat

// A tile of sums that a group computes, and how its subgroups or lanes share it.
struct Tile {
  uint32_t rows, outputs, inputs;
  uint32_t part_rows, part_outputs;  // of a subgroup (coopmat) or of a lane (scalar)
  uint32_t resident = 1;             // groups that a multiprocessor runs at once
  uint32_t ahead = 1;                // coopmat: steps whose weights are on their way
  uint32_t round = 0;                // coopmat: steps written out one after the other
  uint32_t percent = 100;  // time of a sum while that many groups run, of what the best of many
                           // rows takes
};

// Up to the largest tile a product's rows fit in one, so that the weights are read once. More rows
// take the tiles from kManyRows on. Of several tiles for the same rows the outputs decide. Found by
// timing some 5,000 tiles on an H200: docs/measurements.md.
constexpr uint32_t kManyRows = 112;
constexpr Tile kFloatTiles[] = {
    {16, 64, 64, 16, 16, 4, 1, 2},         {32, 128, 64, 32, 32, 2, 1, 2},
    {32, 64, 64, 32, 16, 3, 1, 2, 138},    {48, 96, 64, 48, 32, 2, 1, 2, 191},
    {48, 96, 64, 48, 32, 2, 1, 0, 206},    {48, 224, 64, 48, 32, 1, 1, 2},
    {48, 256, 64, 48, 32, 1, 1, 2},        {64, 96, 64, 32, 32, 2, 1, 2, 186},
    {64, 96, 64, 32, 32, 2, 1, 0, 206},    {64, 224, 64, 32, 56, 1, 1, 2},
    {64, 256, 64, 32, 64, 1, 1, 2},        {80, 192, 64, 80, 32, 1, 1, 0, 104},
    {80, 224, 64, 80, 32, 1, 1, 2},        {80, 256, 64, 80, 32, 1, 1, 2},
    {96, 128, 64, 48, 32, 1, 1, 2},        {96, 192, 64, 96, 32, 1, 1, 0},
    {96, 224, 64, 48, 56, 1, 2, 2},        {112, 224, 64, 112, 32, 1, 1, 8, 118},
    {112, 192, 64, 112, 32, 1, 1, 0, 118}, {128, 128, 64, 32, 64, 1, 1, 8, 110},
    {128, 160, 64, 32, 80, 1, 1, 2, 114},  {128, 192, 64, 64, 48, 1, 2, 2, 101},
    {144, 128, 64, 48, 32, 1, 1, 8, 125},  {160, 128, 64, 80, 32, 1, 1, 8, 110},
    {192, 128, 64, 48, 64, 1, 2, 2},
};
// Decoding takes registers, and there are fewer bytes to wait for.
constexpr Tile kQuantizedTiles[] = {
    {16, 64, 64, 16, 16, 4, 1, 2},         {32, 128, 64, 32, 32, 2, 2, 0},
    {32, 64, 64, 32, 16, 3, 1, 2, 138},    {48, 224, 64, 48, 32, 1, 2, 2},
    {48, 256, 64, 48, 32, 1, 2, 2},        {64, 96, 64, 32, 32, 2, 1, 2, 182},
    {64, 96, 64, 32, 32, 2, 1, 0, 204},    {64, 128, 64, 32, 32, 1, 1, 2, 122},
    {64, 224, 64, 32, 56, 1, 1, 2},        {64, 256, 64, 32, 32, 1, 1, 2},
    {96, 224, 64, 48, 56, 1, 1, 2},        {96, 192, 64, 48, 32, 1, 1, 2},
    {96, 128, 64, 48, 32, 1, 1, 2},        {112, 224, 64, 112, 32, 1, 1, 2, 138},
    {112, 192, 64, 112, 16, 1, 1, 2, 143}, {112, 128, 64, 112, 16, 1, 1, 2, 158},
    {128, 128, 64, 64, 32, 1, 2, 2, 126},  {128, 160, 64, 32, 80, 1, 1, 2, 133},
    {128, 192, 64, 64, 32, 1, 1, 2, 112},  {144, 128, 64, 48, 32, 1, 1, 2, 131},
    {160, 128, 64, 80, 32, 1, 1, 2, 111},  {192, 128, 64, 48, 64, 1, 2, 2},
};
// For devices with less shared memory than the largest of those take. Not measured.
constexpr uint32_t kMuchShared = 48 * 1024;
constexpr Tile kSmallTiles[] = {
    {16, 64, 64, 16, 16, 4, 2}, {32, 128, 64, 32, 16, 2, 1}, {48, 64, 64, 48, 16, 2, 2},
    {64, 64, 64, 64, 16, 2, 2}, {96, 64, 64, 48, 32, 2, 1},  {128, 128, 32, 64, 64, 2, 1},
};
constexpr Tile kScalarTiles[] = {
    {16, 64, 32, 4, 4, 4},
    {32, 64, 32, 4, 4, 4},
    {64, 64, 32, 4, 4, 2},
};

std::span<const Tile> tiles_for(const DeviceCaps& caps, WeightFormat format, bool coopmat) {
  if (!coopmat) return kScalarTiles;
  if (caps.limits.max_shared_bytes < kMuchShared) return kSmallTiles;
  return format_info(format).is_float() ? std::span<const Tile>(kFloatTiles)
                                        : std::span<const Tile>(kQuantizedTiles);
}

uint32_t tile_parts(const Tile& tile) {
  return tile.rows / tile.part_rows * (tile.outputs / tile.part_outputs);
}

uint32_t tile_lanes(const DeviceCaps& caps, const Tile& tile, bool coopmat) {
  return tile_parts(tile) * (coopmat ? caps.subgroup_size : 1);
}

// The fragments that a subgroup makes its part of: the largest that the device has.
std::optional<CoopmatShape> fragment_of(const DeviceCaps& caps, uint32_t part_outputs) {
  std::optional<CoopmatShape> best;
  if (!caps.features.coopmat || !caps.features.float16) return best;
  for (const CoopmatShape& shape : caps.coopmat_shapes) {
    const bool fits = shape.a == ScalarType::kF16 && shape.b == ScalarType::kF16 &&
                      shape.c == ScalarType::kF32 && shape.result == ScalarType::kF32 &&
                      16 % shape.m == 0 && 16 % shape.n == 0 && 32 % shape.k == 0 &&
                      part_outputs % shape.n == 0;
    if (fits && (!best || shape.m * shape.n * shape.k > best->m * best->n * best->k)) best = shape;
  }
  return best;
}

// What the kernels declare as shared, at most.
uint32_t tile_shared_bytes(const Tile& tile, const std::optional<CoopmatShape>& fragment) {
  if (!fragment) return (tile.rows + tile.outputs) * (tile.inputs / 4 + 2) * 16;
  const uint32_t operands = (tile.rows + tile.outputs) * (tile.inputs / 8 + 1) * 16;
  return std::max(operands, tile_parts(tile) * fragment->m * tile.part_outputs * 4);
}

bool fits(const DeviceCaps& caps, const Tile& tile, bool coopmat) {
  const std::optional<CoopmatShape> fragment =
      coopmat ? fragment_of(caps, tile.part_outputs) : std::nullopt;
  return fragment.has_value() == coopmat &&
         tile_lanes(caps, tile, coopmat) <= caps.limits.max_group_invocations &&
         tile_shared_bytes(tile, fragment) <= caps.limits.max_shared_bytes;
}

// As many steps as the tile wants written out, or as k comes in whole rounds of.
uint32_t round_for(const DeviceCaps& caps, const Tile& tile, uint32_t inputs) {
  if (tile.inputs % (2 * fragment_of(caps, tile.part_outputs)->k) != 0) return 0;
  uint32_t round = tile.round;
  while (round > 1 && inputs % (tile.inputs * round) != 0) round /= 2;
  return round > 1 ? round : 0;
}

// A tile, and how many groups share the k of each.
struct Choice {
  Tile tile = {};
  uint32_t splits = 1;
};

uint32_t groups(const MatmulShape& shape, const Choice& choice) {
  return divide_up(shape.rows, choice.tile.rows) * divide_up(shape.outputs, choice.tile.outputs) *
         choice.splits;
}

uint32_t groups_at_once(const DeviceCaps& caps, const Tile& tile) {
  return multiprocessors(caps) * tile.resident;
}

// The time a product takes, but for a factor: how often every multiprocessor has to run a group, by
// the work of one. To write parts of sums and to read them again takes as long as kPartInputs more.
uint64_t cost(const DeviceCaps& caps, const MatmulShape& shape, const Choice& choice) {
  constexpr uint64_t kPartInputs = 256;
  const Tile& tile = choice.tile;
  const uint64_t turns = divide_up(groups(shape, choice), groups_at_once(caps, tile));
  const uint64_t share =
      uint64_t{divide_up(divide_up(shape.inputs, tile.inputs), choice.splits)} * tile.inputs;
  return turns * tile.rows * tile.outputs * (share + (choice.splits > 1 ? kPartInputs : 0)) *
         tile.percent;
}

// The tiles that the device has room for and the product may take: those of the fewest rows that
// hold it, or all large ones.
std::vector<Tile> candidates(const DeviceCaps& caps, const MatmulShape& shape, bool coopmat) {
  std::vector<Tile> tiles;
  std::ranges::copy_if(tiles_for(caps, shape.format, coopmat), std::back_inserter(tiles),
                       [&](const Tile& tile) { return fits(caps, tile, coopmat); });
  const auto holding =
      std::ranges::find_if(tiles, [&](const Tile& tile) { return tile.rows >= shape.rows; });
  const bool one = holding != tiles.end();
  const uint32_t rows = one ? holding->rows : std::min(kManyRows, tiles.back().rows);
  std::erase_if(tiles,
                [&](const Tile& tile) { return one ? tile.rows != rows : tile.rows < rows; });
  return tiles;
}

Choice choose(const DeviceCaps& caps, const MatmulShape& shape, bool coopmat) {
  constexpr uint32_t kMostSplits = 16, kFewestSteps = 4;
  Choice best;
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (Tile tile : candidates(caps, shape, coopmat)) {
    tile.round = coopmat ? round_for(caps, tile, shape.inputs) : 0;
    const uint32_t steps = divide_up(shape.inputs, tile.inputs);
    const uint32_t most = std::clamp(steps / kFewestSteps, 1u, kMostSplits);
    for (uint32_t splits = 1; splits <= most; ++splits) {
      if (tile.round > 0 && steps % (tile.round * splits) != 0) continue;
      const Choice choice{.tile = tile, .splits = splits};
      // Only where there are too few tiles for the device.
      if (splits > 1 && groups(shape, choice) > groups_at_once(caps, tile)) break;
      const uint64_t time = cost(caps, shape, choice);
      if (time >= least) continue;
      least = time;
      best = choice;
    }
  }
  return best;
}

}  // namespace

std::string variant(std::string_view kernel, WeightFormat format) {
  return fmt::format("{}.{}", kernel, format_info(format).header);
}

std::optional<CoopmatShape> coopmat_shape(const DeviceCaps& caps) { return fragment_of(caps, 16); }

// Matrix units take f16, which is no loss for weights of 16 bits and fewer. Whoever keeps weights
// in F32 wants what that is good for.
bool matrix_units(const DeviceCaps& caps, WeightFormat format) {
  return format != WeightFormat::kF32 && coopmat_shape(caps).has_value();
}

MatmulPlan choose_tile(const DeviceCaps& caps, const MatmulShape& shape) {
  const bool coopmat = matrix_units(caps, shape.format);
  const auto [tile, splits] = choose(caps, shape, coopmat);
  const uint32_t lanes = tile_lanes(caps, tile, coopmat);
  const uint32_t down = divide_up(shape.rows, tile.rows);
  const uint32_t across = divide_up(shape.outputs, tile.outputs);

  MatmulPlan plan;
  PipelineInfo& info = plan.multiply.pipeline;
  info.kernel = variant(coopmat ? "matmul_coopmat" : "matmul_tile", shape.format);
  info.constants = {lanes,       kNoEpilogue, tile.rows,      tile.outputs,
                    tile.inputs, splits,      tile.part_rows, tile.part_outputs};
  if (coopmat) {
    const std::optional<CoopmatShape> fragment = fragment_of(caps, tile.part_outputs);
    // Small fragments are made of plain instructions, which had better be few.
    const uint32_t unroll = fragment->k < 16 ? 1 : tile.inputs / fragment->k;
    info.constants.insert(info.constants.end(),
                          {fragment->m, fragment->n, fragment->k, tile_parts(tile), tile.ahead,
                           unroll, 0, 0, tile.round});
    info.subgroup_size = caps.subgroup_size;
    if (splits == 1 && tile.outputs / fragment->n % 2 == 0) plan.gate_constant = kCoopmatGate;
    const uint32_t row_lanes = group_size(caps, 128);
    plan.form = RowForm::kHalves;
    plan.prepare =
        KernelPlan{.pipeline = {.kernel = "half_rows", .constants = {row_lanes}},
                   .groups = {.x = divide_up(shape.inputs / 8, row_lanes), .y = shape.rows}};
    plan.prepared_bytes = row_form_bytes(plan.form, shape.rows, shape.inputs);
  }
  plan.multiply.groups = {.x = down, .y = across, .z = splits};
  if (splits > 1) {
    const uint32_t reduce_lanes = group_size(caps, 256);
    plan.reduce = KernelPlan{
        .pipeline = {.kernel = "matmul_reduce",
                     .constants = {reduce_lanes, kNoEpilogue, splits, tile.rows, tile.outputs}},
        .groups = {.x = divide_up(shape.outputs, 4 * reduce_lanes), .y = shape.rows}};
    plan.parts = {.splits = splits, .rows = down * tile.rows, .outputs = across * tile.outputs};
    plan.part_bytes = uint64_t{splits} * plan.parts.rows * plan.parts.outputs * 4;
  }
  plan.scratch_bytes = plan.prepared_bytes + plan.part_bytes;
  return plan;
}

}  // namespace hearth
