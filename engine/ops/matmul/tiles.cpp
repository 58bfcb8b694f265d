#include "engine/ops/matmul/tiles.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "engine/ops/matmul/tile_family.h"
#include "engine/ops/tuning/profile.h"

namespace hearth {
namespace {

std::span<const Tile> tiles_for(const TilesTuning& tuning, WeightFormat format, bool coopmat) {
  if (!coopmat) return tuning.scalars;
  return format_info(format).is_float() ? tuning.floats : tuning.quantized;
}

bool fits(const DeviceCaps& caps, const MatmulShape& shape, const Tile& tile) {
  return tile_family(tile.kernel).supports({caps, shape, tile});
}

// The kernel of a tile, with k in `splits` splits.
PipelineInfo tile_kernel(const DeviceCaps& caps, const MatmulShape& shape, const Tile& tile,
                         uint32_t splits) {
  return tile_family(tile.kernel).plan({caps, shape, tile, splits});
}

// The number of unrolled steps: the tile's, or fewer so that k is a multiple of it.
uint32_t round_for(const DeviceCaps& caps, const Tile& tile, uint32_t inputs) {
  if (tile.kernel != TileKernel::kCoopmat ||
      tile.inputs % (2 * fragment_of(caps, tile.part_outputs)->k) != 0)
    return 0;
  uint32_t round = tile.round;
  while (round > 1 && inputs % (tile.inputs * round) != 0) round /= 2;
  return round > 1 ? round : 0;
}

// A tile, and into how many splits k is divided, for all tiles or only for the last ones; or the
// number of tiles across, and the smaller tile for the outputs that are left.
struct Choice {
  Tile tile = {};
  uint32_t splits = 1, last_splits = 1;
  uint32_t across = 0;
  std::optional<Tile> rest = {};
};

// Includes the tiles of sibling products, which run at the same time and use the same tiles.
uint32_t tile_count(const MatmulShape& shape, const Tile& tile) {
  return divide_up(shape.rows, tile.rows) *
         (divide_up(shape.outputs, tile.outputs) + divide_up(shape.sibling_outputs, tile.outputs));
}

uint32_t groups_at_once(const DeviceCaps& caps, const Tile& tile) {
  return multiprocessors(caps) * tile.resident;
}

// The unit in which k is split: steps, or rounds of unrolled steps.
uint32_t unit_inputs(const Tile& tile) { return tile.inputs * std::max(1u, tile.round); }

// The inputs of the largest split of k.
uint64_t share_inputs(const MatmulShape& shape, const Tile& tile, uint32_t splits) {
  const uint32_t units = divide_up(shape.inputs, unit_inputs(tile));
  return uint64_t{divide_up(units, splits)} * unit_inputs(tile);
}

// The time of a product, up to a factor: the number of waves times the work of one workgroup.
uint64_t product_time(const DeviceCaps& caps, const TilesTuning& tuning, const MatmulShape& shape,
                      const Choice& choice) {
  const auto& [tile, splits, last_splits, across, rest] = choice;
  const uint32_t groups = tile_count(shape, tile) * splits;
  const bool rereads_weights = shape.rows > tile.rows;
  const uint64_t part_inputs = splits == 1       ? 0
                               : rereads_weights ? 2 * tuning.part_inputs
                                                 : tuning.part_inputs;
  uint64_t inputs = divide_up(groups, groups_at_once(caps, tile)) *
                    (share_inputs(shape, tile, splits) + part_inputs);
  if (last_splits > 1)
    inputs = groups / groups_at_once(caps, tile) * share_inputs(shape, tile, 1) +
             share_inputs(shape, tile, last_splits) + tuning.last_inputs +
             tuning.last_split_inputs * last_splits;
  const auto weigh = [&](uint64_t tile_inputs, const Tile& of) {
    const uint64_t percent = of.percent + (rereads_weights ? of.reread_percent : 0);
    return tile_inputs * of.rows * of.outputs * percent;
  };
  if (!rest) return weigh(inputs, tile);
  return weigh(share_inputs(shape, tile, 1), tile) + weigh(share_inputs(shape, *rest, 1), *rest);
}

// The ways to split k: for all tiles if there are too few for the device, otherwise only for those
// after the last full wave. Products of few rows, which are limited by memory rather than
// arithmetic, were only timed with equal splits.
std::vector<Choice> ways_to_split(const DeviceCaps& caps, const TilesTuning& tuning,
                                  const MatmulShape& shape, const Tile& tile) {
  const uint32_t tiles = tile_count(shape, tile), at_once = groups_at_once(caps, tile);
  const uint32_t steps = divide_up(shape.inputs, tile.inputs);
  const auto most = [&](uint32_t shared_tiles, uint32_t limit) {
    return std::min({at_once / shared_tiles, steps / tuning.fewest_split_steps,
                     divide_up(shape.inputs, unit_inputs(tile)), limit});
  };
  const bool many = tile.rows >= tuning.many_rows;
  std::vector<Choice> ways = {{.tile = tile}};
  for (uint32_t splits = 2; splits <= most(tiles, tuning.most_splits); ++splits)
    if (many || tile.round == 0 || steps % (tile.round * splits) == 0)
      ways.push_back({.tile = tile, .splits = splits});
  const uint32_t left = tiles % at_once;
  if (tile.kernel == TileKernel::kScalar || !many || tiles < at_once || left == 0 ||
      shape.sibling_outputs > 0)
    return ways;
  for (uint32_t splits = 2; splits <= most(left, tuning.most_last_splits); ++splits)
    ways.push_back({.tile = tile, .last_splits = splits});
  return ways;
}

// One wave of `tile` and one of the smaller `rest` for the outputs that are left, if necessary with
// fewer tiles of the first so that all are whole. With more waves this did not shorten the last
// one.
std::optional<Choice> with_smaller_rest(const DeviceCaps& caps, const MatmulShape& shape,
                                        const Tile& tile, const Tile& rest) {
  const uint32_t tiles = tile_count(shape, tile), at_once = groups_at_once(caps, tile);
  if (tile.kernel != TileKernel::kWide || rest.kernel != TileKernel::kWide ||
      rest.rows != tile.rows || rest.outputs >= tile.outputs || tiles <= at_once ||
      shape.sibling_outputs > 0)
    return std::nullopt;
  const uint32_t down = divide_up(shape.rows, tile.rows);
  const auto left = [&](uint32_t across) { return shape.outputs - across * tile.outputs; };
  const auto one_wave = [&](uint32_t across) {
    return across > 0 && divide_up(left(across), rest.outputs) * down <= at_once;
  };
  const uint32_t most = at_once / down;
  if (!one_wave(most)) return std::nullopt;
  uint32_t across = most;
  while (one_wave(across) && left(across) % rest.outputs != 0) --across;
  return Choice{.tile = tile, .across = one_wave(across) ? across : most, .rest = rest};
}

// The tiles that fit on the device and suit the product: those with the fewest rows that hold it,
// or all large ones.
std::vector<Tile> candidates(const DeviceCaps& caps, const TilesTuning& tuning,
                             const MatmulShape& shape, bool coopmat) {
  std::vector<Tile> tiles;
  std::ranges::copy_if(tiles_for(tuning, shape.format, coopmat), std::back_inserter(tiles),
                       [&](const Tile& tile) { return fits(caps, shape, tile); });
  const uint32_t many = std::min(tuning.many_rows, tiles.back().rows);
  const auto holding =
      std::ranges::find_if(tiles, [&](const Tile& tile) { return tile.rows >= shape.rows; });
  const bool one = shape.rows <= many && holding != tiles.end();
  const uint32_t rows = one ? holding->rows : many;
  std::erase_if(tiles,
                [&](const Tile& tile) { return one ? tile.rows != rows : tile.rows < rows; });
  return tiles;
}

Choice choose(const DeviceCaps& caps, const MatmulShape& shape, bool coopmat) {
  Choice best;
  uint64_t least = std::numeric_limits<uint64_t>::max();
  const TilesTuning tuning = tuning_profile(caps).tiles;
  const std::vector<Tile> tiles = candidates(caps, tuning, shape, coopmat);
  for (Tile tile : tiles) {
    tile.round = round_for(caps, tile, shape.inputs);
    std::vector<Choice> ways = ways_to_split(caps, tuning, shape, tile);
    for (const Tile& rest : tiles)
      if (const auto way = with_smaller_rest(caps, shape, tile, rest)) ways.push_back(*way);
    for (const Choice& choice : ways) {
      const uint64_t time = product_time(caps, tuning, shape, choice);
      if (time >= least) continue;
      least = time;
      best = choice;
    }
  }
  return best;
}

}  // namespace

std::vector<RowTile> row_tiles(const DeviceCaps& caps, const MatmulShape& shape, bool coopmat) {
  const TuningProfile profile = tuning_profile(caps);
  const TilesTuning& tuning = profile.tiles;
  std::vector<Tile> tiles;
  std::ranges::copy(tiles_for(tuning, shape.format, coopmat), std::back_inserter(tiles));
  if (coopmat && profile.experts.fewest_rows) tiles.push_back(*profile.experts.fewest_rows);
  std::vector<RowTile> all;
  for (Tile tile : tiles) {
    const uint32_t inputs = tile.kernel == TileKernel::kDirect ? tile.inputs : shape.inputs;
    if (!fits(caps, {.inputs = inputs}, tile)) continue;
    if (coopmat && tile.outputs / fragment_outputs(caps, tile) % 2 != 0) continue;
    tile.round = round_for(caps, tile, shape.inputs);
    const uint32_t across = divide_up(shape.outputs, tile.outputs);
    all.push_back({.rows = tile.rows,
                   .kernel = {tile_kernel(caps, shape, tile, 1), {.y = across}},
                   .cost = uint64_t{across} * tile.outputs * tile.percent / tile.resident,
                   .percent = tile.rows >= tuning.many_rows ? tile.percent : 100});
  }
  return all;
}

namespace {

// Matrix units are soon faster than vectors, although most of the tile is empty; compared with
// integer dot products, a little later.
bool supports_tiles(const MatmulRequest& request) {
  const auto& [caps, shape, deterministic] = request;
  const TilesTuning tuning = tuning_profile(caps).tiles;
  const uint32_t most_vectors = !matrix_units(caps, shape.format) ? kMaxMatvecRows
                                : integer_products(caps, shape)   ? tuning.integer_matvec_rows
                                                                  : tuning.matvec_rows;
  return shape.rows > most_vectors && !deterministic;
}

MatmulPlan plan_tiles(const MatmulRequest& request) {
  const auto& [caps, shape, deterministic] = request;
  const bool coopmat = matrix_units(caps, shape.format);
  const auto [tile, splits, last_splits, columns, rest] = choose(caps, shape, coopmat);
  const uint32_t down = divide_up(shape.rows, tile.rows);
  const uint32_t across = rest ? columns : divide_up(shape.outputs, tile.outputs);

  MatmulPlan plan;
  MatmulShape part = shape;  // the part that a kernel computes
  if (rest) {
    const uint32_t first = across * tile.outputs;
    part.outputs = shape.outputs - first;
    plan.rest = {.multiply = {.pipeline = tile_kernel(caps, part, *rest, 1),
                              .groups = {.x = down, .y = divide_up(part.outputs, rest->outputs)}},
                 .first_output = first};
    part.outputs = first;
  }
  plan.multiply.pipeline = tile_kernel(caps, part, tile, splits);
  if (coopmat) {
    const uint32_t fragment = fragment_outputs(caps, tile);
    const bool even =
        tile.outputs / fragment % 2 == 0 && (!rest || rest->outputs / fragment % 2 == 0);
    plan.can_gate = splits == 1 && even;
    take_halves(caps, shape, plan);
  }
  plan.multiply.groups = {.x = down, .y = across, .z = splits};
  if (splits > 1) leave_parts(caps, shape, splits, tile.rows, plan);
  if (last_splits > 1) {
    const uint32_t left = down * across % groups_at_once(caps, tile);
    const uint32_t whole = down * across - left;
    plan.shared = {.multiply = {.pipeline = plan.multiply.pipeline,
                                .groups = {.x = whole + left * last_splits}},
                   .whole_tiles = whole,
                   .count_bytes = uint64_t{left} * 4};
    plan.shared->multiply.pipeline.constants.set("kTailSplits", last_splits);
    plan.part_bytes = uint64_t{left} * last_splits * tile.rows * tile.outputs * 4;
  }
  plan.scratch_bytes = plan.prepared_bytes + plan.part_bytes;
  return plan;
}

}  // namespace

const MatmulFamily kMatmulTiles{"matmul", supports_tiles, plan_tiles};

}  // namespace hearth
