#include "engine/ops/choose_experts.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "engine/ops/choose_tile.h"

namespace hearth {
namespace {

// A product of an expert, for all tiles.
struct ProductShape {
  WeightFormat format;
  uint32_t inputs, outputs;
  bool gated;
};

// The matmul kernel's variant for experts: "matmul_wide.f16" becomes "experts_wide.f16".
std::string experts_kernel(const std::string& matmul) {
  return "experts" + matmul.substr(matmul.find('_'));
}

uint32_t pairs_of(const ExpertsShape& shape) { return shape.rows * shape.used; }

// The most tiles that any choice of experts needs.
uint32_t most_tiles(const ExpertsShape& shape, uint32_t tile_rows) {
  const uint32_t pairs = pairs_of(shape);
  return tile_rows == 1 ? pairs : pairs / tile_rows + std::min(pairs, shape.experts);
}

// Tiles that are about as many as the experts' rows need, in hundredths: an expert's last tile is
// half empty.
uint64_t expected_tiles(const ExpertsShape& shape, uint32_t tile_rows) {
  const uint64_t pairs = pairs_of(shape);
  return 100 * pairs / tile_rows + 50 * std::min<uint64_t>(pairs, shape.experts);
}

// One invocation per result and tile.
ExpertProduct choose_cpu_product(const DeviceCaps& caps, const ProductShape& product,
                                 uint32_t tile_rows, uint32_t tiles) {
  constexpr size_t kGateConstant = 3;
  const uint32_t results = product.gated ? product.outputs / 2 : product.outputs;
  const uint32_t lanes =
      std::max(caps.subgroup_size, std::min(group_size(caps, 64), std::bit_floor(results)));
  return {.kernel = {.pipeline = {.kernel = variant("experts_invocation", product.format),
                                  .constants = {lanes, kNoEpilogue, tile_rows, 0}},
                     .groups = {.x = divide_up(results, lanes), .y = tiles}},
          .gate_constant = kGateConstant};
}

// One row per tile: the matrix-vector kernel of a single row, for every pair.
ExpertProduct choose_row_product(const DeviceCaps& caps, const ProductShape& product,
                                 uint32_t tiles) {
  constexpr size_t kOutputs = 3, kFloatGate = 5, kTeamGate = 8, kTeams = 9, kRounds = 6;
  const MatmulPlan plan = choose_matmul(caps, {.format = product.format,
                                               .rows = 1,
                                               .inputs = product.inputs,
                                               .outputs = product.outputs,
                                               .sibling_outputs = product.outputs * (tiles - 1)});
  ExpertProduct chosen{.kernel = plan.multiply};
  PipelineInfo& pipeline = chosen.kernel.pipeline;
  const bool teams = !pipeline.kernel.starts_with("matvec_float");
  chosen.gate_constant = teams ? kTeamGate : kFloatGate;
  if (product.gated && pipeline.constants[kOutputs] % 2 != 0) {
    uint32_t& outputs = pipeline.constants[kOutputs];
    outputs *= 2;
    const uint32_t group_outputs =
        outputs * (teams ? pipeline.constants[kTeams] * pipeline.constants[kRounds]
                         : pipeline.constants[0] / caps.subgroup_size);
    chosen.kernel.groups.x = divide_up(product.outputs, group_outputs);
  }
  pipeline.kernel = experts_kernel(pipeline.kernel);
  chosen.kernel.groups.y = tiles;
  return chosen;
}

// The time of a tile up to a factor: that of the products, and that of loading and decoding
// weights, which takes as long as the products of some rows. Chosen such that qwen3-30b-a3b in Q4_K
// gets the tiles that were fast on an H200: 32 rows at 256 rows per step.
uint64_t tile_time(const ExpertsShape& shape, uint32_t rows) {
  constexpr uint32_t kQuantizedRows = 24, kFloatRows = 16;
  return rows + (format_info(shape.gate_up).is_float() ? kFloatRows : kQuantizedRows);
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
                                     const ProductShape& gate_up, const ProductShape& down,
                                     bool matrices) {
  const auto tiles_of = [&](const ProductShape& product) {
    return row_tiles(
        caps,
        {.format = product.format, .rows = 1, .inputs = product.inputs, .outputs = product.outputs},
        matrices);
  };
  const std::vector<RowTile> first = tiles_of(gate_up), second = tiles_of(down);
  std::optional<TilePair> best;
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (const RowTile& tile : first) {
    const std::optional<RowTile> a = cheapest_tile(first, tile.rows);
    const std::optional<RowTile> b = cheapest_tile(second, tile.rows);
    if (!b) continue;
    const uint64_t cost =
        expected_tiles(shape, tile.rows) * tile_time(shape, tile.rows) * (a->percent + b->percent);
    if (cost >= least) continue;
    least = cost;
    best = {*a, *b};
  }
  return best;
}

ExpertProduct tile_product(const RowTile& tile, uint32_t tiles) {
  ExpertProduct product{.kernel = tile.kernel, .gate_constant = tile.gate_constant};
  product.kernel.pipeline.kernel = experts_kernel(tile.kernel.pipeline.kernel);
  // matmul_tile has gates only as a kernel of experts.
  std::vector<uint32_t>& constants = product.kernel.pipeline.constants;
  constants.resize(std::max(constants.size(), tile.gate_constant + 1));
  product.kernel.groups.x = tiles;
  return product;
}

// How many rows of an expert an invocation computes at once on a CPU, where the weights are then
// decoded once for all.
uint32_t cpu_tile_rows(const ExpertsShape& shape) {
  return std::bit_floor(std::clamp(pairs_of(shape) / shape.experts, 1u, 8u));
}

void plan_lists(const DeviceCaps& caps, const ExpertsShape& shape, ExpertsPlan& plan) {
  const uint32_t lanes = caps.subgroup_size;
  plan.route = {.pipeline = {.kernel = "route",
                             .constants = {lanes, shape.used, divide_up(shape.experts, lanes),
                                           shape.over_all ? 1u : 0u},
                             .subgroup_size = lanes},
                .groups = {.x = shape.rows}};
  if (plan.tile_rows > 1) {
    const uint32_t group_lanes =
        is_cpu(caps) ? lanes : group_size(caps, std::clamp(pairs_of(shape), 128u, 1024u));
    plan.group = KernelPlan{.pipeline = {.kernel = "group_experts",
                                         .constants = {group_lanes, shape.experts},
                                         .subgroup_size = lanes},
                            .groups = {.x = shape.experts}};
  }
  const uint32_t combine_lanes = is_cpu(caps) ? lanes : group_size(caps, 128);
  plan.combine = {.pipeline = {.kernel = "combine_experts",
                               .constants = {combine_lanes, shape.used, plan.group ? 1u : 0u}},
                  .groups = {.x = divide_up(shape.width / 4, combine_lanes), .y = shape.rows}};
}

}  // namespace

ExpertScratch expert_scratch(const ExpertsPlan& plan, const ExpertsShape& shape) {
  ExpertScratch scratch;
  const auto place = [&](ExpertScratch::Part& part, uint64_t bytes) {
    part = {scratch.total_bytes, bytes};
    scratch.total_bytes += (bytes + 255) / 256 * 256;
  };
  const uint64_t pairs = pairs_of(shape), positions = plan.positions();
  place(scratch.chosen, pairs * 4);
  place(scratch.weights, pairs * 4);
  if (plan.group) {
    place(scratch.tiles, uint64_t{plan.tiles} * 4);
    place(scratch.sources, positions * 4);
    place(scratch.scales, positions * 4);
    place(scratch.places, pairs * 4);
  }
  if (plan.prepare) place(scratch.prepared, uint64_t{shape.rows} * shape.width * 2);
  place(scratch.hidden, positions * shape.mlp_width * (plan.halves ? 2 : 4));
  place(scratch.results, positions * shape.width * 4);
  return scratch;
}

ExpertsPlan choose_experts(const DeviceCaps& caps, const ExpertsShape& shape, bool deterministic) {
  const ProductShape gate_up{shape.gate_up, shape.width, 2 * shape.mlp_width, true};
  const ProductShape down{shape.down, shape.mlp_width, shape.width, false};
  // With a row of its own for nearly every expert there is nothing to share.
  const bool share = !deterministic && pairs_of(shape) > shape.experts;
  ExpertsPlan plan;
  if (is_cpu(caps)) {
    plan.tile_rows = share ? cpu_tile_rows(shape) : 1;
    plan.tiles = most_tiles(shape, plan.tile_rows);
    plan.gate_up = choose_cpu_product(caps, gate_up, plan.tile_rows, plan.tiles);
    plan.down = choose_cpu_product(caps, down, plan.tile_rows, plan.tiles);
  } else if (!share) {
    plan.tiles = most_tiles(shape, 1);
    plan.gate_up = choose_row_product(caps, gate_up, plan.tiles);
    plan.down = choose_row_product(caps, down, plan.tiles);
  } else {
    bool matrices = matrix_units(caps, shape.gate_up) && matrix_units(caps, shape.down);
    std::optional<TilePair> tiles = choose_tiles(caps, shape, gate_up, down, matrices);
    if (!tiles) {
      matrices = false;
      tiles = choose_tiles(caps, shape, gate_up, down, matrices);
    }
    plan.tile_rows = tiles->down.rows;
    plan.tiles = most_tiles(shape, plan.tile_rows);
    plan.gate_up = tile_product(tiles->gate_up, plan.tiles);
    plan.down = tile_product(tiles->down, plan.tiles);
    plan.halves = matrices;
    plan.gate_up.half_results = matrices;
    if (matrices) {
      const uint32_t lanes = group_size(caps, 128);
      plan.prepare =
          KernelPlan{.pipeline = {.kernel = "half_rows", .constants = {lanes}},
                     .groups = {.x = divide_up(shape.width / 8, lanes), .y = shape.rows}};
    }
  }
  plan_lists(caps, shape, plan);
  plan.scratch_bytes = expert_scratch(plan, shape).total_bytes;
  return plan;
}

}  // namespace hearth
