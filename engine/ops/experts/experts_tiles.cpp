// experts_tile, experts_coopmat, experts_direct and experts_wide: rows that chose the same expert
// are multiplied together, by the matmul kernels that work on tiles of rows.
#include <algorithm>
#include <limits>
#include <optional>

#include "engine/ops/experts/family.h"
#include "engine/ops/matmul/tiles.h"
#include "engine/ops/tuning/profile.h"
#include "params/half_rows.h"
#include "params/matmul.h"

namespace hearth {
namespace {

// Tiles that are about as many as the experts' rows need, in hundredths: an expert's last tile is
// half empty.
uint64_t expected_tiles(const ExpertsShape& shape, uint32_t tile_rows) {
  const uint64_t pairs = pairs_of(shape);
  return 100 * pairs / tile_rows + 50 * std::min<uint64_t>(pairs, shape.experts);
}

// The time of a tile up to a factor: that of the products, and that of loading and decoding
// weights.
uint64_t tile_time(const ExpertsTuning& tuning, const ExpertsShape& shape, uint32_t rows) {
  return rows + (format_info(shape.gate_up).is_float() ? tuning.float_tile_rows
                                                       : tuning.quantized_tile_rows);
}

// The tile with that many rows that takes the least time.
std::optional<RowTile> cheapest_tile(std::span<const RowTile> tiles, uint32_t rows) {
  std::optional<RowTile> best;
  for (const RowTile& tile : tiles)
    if (tile.rows == rows && (!best || tile.cost < best->cost)) best = tile;
  return best;
}

struct TilePair {
  RowTile gate_up, down;
};

// Tiles of the same rows for both products, the fastest for the number of rows that experts get.
// Empty if the device has no room for any, which happens only with matrix units.
std::optional<TilePair> choose_tiles(const DeviceCaps& caps, const ExpertsShape& shape,
                                     bool matrices) {
  const auto tiles_of = [&](const ExpertProductShape& product) {
    return row_tiles(
        caps,
        {.format = product.format, .rows = 1, .inputs = product.inputs, .outputs = product.outputs},
        matrices);
  };
  const std::vector<RowTile> first = tiles_of(gate_up_product(shape)),
                             second = tiles_of(down_product(shape));
  const ExpertsTuning tuning = tuning_profile(caps).experts;
  std::optional<TilePair> best;
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (const RowTile& tile : first) {
    const std::optional<RowTile> a = cheapest_tile(first, tile.rows);
    const std::optional<RowTile> b = cheapest_tile(second, tile.rows);
    if (!b) continue;
    const uint64_t cost = expected_tiles(shape, tile.rows) * tile_time(tuning, shape, tile.rows) *
                          (a->percent + b->percent);
    if (cost >= least) continue;
    least = cost;
    best = {*a, *b};
  }
  return best;
}

ExpertProduct tile_product(const RowTile& tile, uint32_t tiles) {
  ExpertProduct product{.kernel = tile.kernel};
  product.kernel.pipeline.kernel = experts_kernel(tile.kernel.pipeline.kernel);
  // matmul_tile has gates only as a kernel of experts.
  product.kernel.pipeline.constants.set("kGate", params::kGateNone);
  product.kernel.groups.x = tiles;
  return product;
}

bool supports_experts_tiles(const ExpertsRequest&) { return true; }

ExpertsPlan plan_experts_tiles(const ExpertsRequest& request) {
  const auto& [caps, shape, deterministic] = request;
  bool matrices = matrix_units(caps, shape.gate_up) && matrix_units(caps, shape.down);
  std::optional<TilePair> tiles = choose_tiles(caps, shape, matrices);
  if (!tiles) {
    matrices = false;
    tiles = choose_tiles(caps, shape, matrices);
  }
  ExpertsPlan plan;
  plan.tile_rows = tiles->down.rows;
  plan.tiles = most_tiles(shape, plan.tile_rows);
  plan.gate_up = tile_product(tiles->gate_up, plan.tiles);
  plan.down = tile_product(tiles->down, plan.tiles);
  plan.halves = plan.gate_up.half_results = matrices;
  if (matrices) {
    const uint32_t lanes = group_size(caps, 128);
    plan.prepare =
        KernelPlan{.pipeline = {.kernel = "half_rows",
                                .constants = params::HalfRowsConstants{.kWorkgroupSize = lanes}},
                   .groups = {.x = divide_up(shape.width / 8, lanes), .y = shape.rows}};
  }
  return plan;
}

}  // namespace

const ExpertsFamily kExpertsTiles{"experts", supports_experts_tiles, plan_experts_tiles};

}  // namespace hearth
