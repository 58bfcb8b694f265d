#include "engine/ops/choose_experts.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "engine/ops/choose_few_experts.h"
#include "engine/ops/choose_tile.h"
#include "engine/ops/tuning/profile.h"
#include "params/combine_experts.h"
#include "params/experts_invocation.h"
#include "params/group_experts.h"
#include "params/half_rows.h"
#include "params/route.h"

namespace hearth {
namespace {

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
ExpertProduct choose_cpu_product(const DeviceCaps& caps, const ExpertProductShape& product,
                                 uint32_t tile_rows, uint32_t tiles) {
  const uint32_t results = product.gated ? product.outputs / 2 : product.outputs;
  const uint32_t lanes =
      std::max(caps.subgroup_size, std::min(group_size(caps, 64), std::bit_floor(results)));
  return {.kernel = {
              .pipeline = {.kernel = variant("experts_invocation", product.format),
                           .constants = params::ExpertsInvocationConstants{.kWorkgroupSize = lanes,
                                                                           .kRows = tile_rows}},
              .groups = {.x = divide_up(results, lanes), .y = tiles}}};
}

bool is_integer_kernel(const KernelPlan& kernel) {
  return kernel.pipeline.kernel.find("_integer.") != std::string::npos;
}

// How many workgroups per tile let all workgroups run in as few full waves as possible, if
// `at_once` run at once.
uint32_t groups_per_tile(uint32_t tiles, uint32_t at_once) {
  constexpr uint32_t kMostWaves = 4, kFullPercent = 90;
  uint32_t best = 1, best_percent = 0;
  for (uint32_t waves = 1; waves <= kMostWaves; ++waves) {
    const uint32_t groups = waves * at_once / tiles;
    const uint32_t percent = tiles * groups * 100 / (waves * at_once);
    if (percent > best_percent) {
      best = groups;
      best_percent = percent;
    }
    if (percent >= kFullPercent) break;
  }
  return best;
}

// Divides the outputs of every tile among as many workgroups as run at once. A workgroup converts x
// to integers first, and with experts it chooses them, so a few that stay are better than many.
void spread_integer(const DeviceCaps& caps, uint32_t outputs, uint32_t tiles, KernelPlan& kernel) {
  constexpr uint32_t kMostPartialBytes = 12 * 1024;
  KernelConstants& constants = kernel.pipeline.constants;
  const bool large = constants.workgroup_size() > tuning_profile(caps).integer.group_lanes;
  const uint32_t at_once = multiprocessors(caps) * (large ? 1 : 2);
  const uint32_t round_outputs = constants["kOutputs"] * constants["kTeams"];
  const uint32_t rounds = divide_up(outputs, round_outputs * groups_per_tile(tiles, at_once));
  const uint32_t most = kMostPartialBytes / (4 * constants["kOutputs"] * constants["kSubgroups"]);
  constants.set("kRounds", std::clamp(rounds, 1u, std::max(most, 1u)));
  kernel.groups.x = divide_up(outputs, round_outputs * constants["kRounds"]);
}

// One row per tile: the matrix-vector kernel of a single row, for every pair.
ExpertProduct choose_row_product(const DeviceCaps& caps, const ExpertProductShape& product,
                                 uint32_t tiles) {
  const MatmulPlan plan = choose_matmul(caps, {.format = product.format,
                                               .rows = 1,
                                               .inputs = product.inputs,
                                               .outputs = product.outputs,
                                               .sibling_outputs = product.outputs * (tiles - 1)});
  ExpertProduct chosen{.kernel = plan.multiply};
  PipelineInfo& pipeline = chosen.kernel.pipeline;
  const bool teams = !pipeline.kernel.starts_with("matvec_float");
  chosen.can_norm = teams;
  if (product.gated && pipeline.constants["kOutputs"] % 2 != 0) {
    const uint32_t outputs = 2 * pipeline.constants["kOutputs"];
    pipeline.constants.set("kOutputs", outputs);
    const uint32_t group_outputs =
        outputs * (teams ? pipeline.constants["kTeams"] * pipeline.constants["kRounds"]
                         : pipeline.constants.workgroup_size() / caps.subgroup_size);
    chosen.kernel.groups.x = divide_up(product.outputs, group_outputs);
  }
  if (is_integer_kernel(chosen.kernel)) spread_integer(caps, product.outputs, tiles, chosen.kernel);
  pipeline.kernel = experts_kernel(pipeline.kernel);
  chosen.kernel.groups.y = tiles;
  return chosen;
}

// A product that adds up the experts of each row, as if their inputs were one longer row. Empty if
// there is no kernel for it.
std::optional<ExpertProduct> choose_row_sums(const DeviceCaps& caps, const ExpertsShape& shape) {
  const MatmulPlan plan = choose_matmul(caps, {.format = shape.down,
                                               .rows = 1,
                                               .inputs = shape.used * shape.mlp_width,
                                               .outputs = shape.width});
  if (!is_integer_kernel(plan.multiply)) return std::nullopt;
  ExpertProduct chosen{.kernel = plan.multiply, .sums = true};
  spread_integer(caps, shape.width, shape.rows, chosen.kernel);
  PipelineInfo& pipeline = chosen.kernel.pipeline;
  pipeline.constants.set("kExpertInputs", shape.mlp_width);
  pipeline.kernel = variant("experts_sum_integer", shape.down);
  chosen.kernel.groups.y = shape.rows;
  return chosen;
}

// Whether the first product's workgroups should choose the experts themselves: not if most of them
// come after others, which would have to choose again.
bool routes_itself(const DeviceCaps& caps, const ExpertsShape& shape, const KernelPlan& gate_up) {
  constexpr uint32_t kMostLaneExperts = 8, kMostGroups = 4;  // the latter per multiprocessor
  return shape.experts <= kMostLaneExperts * caps.subgroup_size &&
         gate_up.groups.x * gate_up.groups.y <= kMostGroups * multiprocessors(caps);
}

void route_in_product(const DeviceCaps& caps, const ExpertsShape& shape, KernelPlan& gate_up) {
  KernelConstants& constants = gate_up.pipeline.constants;
  constants.set("kRouteUsed", shape.used);
  constants.set("kLaneExperts", divide_up(shape.experts, caps.subgroup_size));
  constants.set("kOverAll", shape.over_all ? 1u : 0u);
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
                                     const ExpertProductShape& gate_up,
                                     const ExpertProductShape& down, bool matrices) {
  const auto tiles_of = [&](const ExpertProductShape& product) {
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
  ExpertProduct product{.kernel = tile.kernel};
  product.kernel.pipeline.kernel = experts_kernel(tile.kernel.pipeline.kernel);
  // matmul_tile has gates only as a kernel of experts.
  product.kernel.pipeline.constants.set("kGate", params::kGateNone);
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
  const bool row_kernels = !is_cpu(caps) && plan.tile_rows == 1 && !plan.gate_up.all_rows;
  if (row_kernels && routes_itself(caps, shape, plan.gate_up.kernel)) {
    route_in_product(caps, shape, plan.gate_up.kernel);
  } else if (!plan.gate_up.all_rows) {
    plan.route = KernelPlan{
        .pipeline = {.kernel = "route",
                     .constants =
                         params::RouteConstants{.kWorkgroupSize = lanes,
                                                .kUsed = shape.used,
                                                .kLaneExperts = divide_up(shape.experts, lanes),
                                                .kOverAll = shape.over_all ? 1u : 0u},
                     .subgroup_size = lanes},
        .groups = {.x = shape.rows}};
  }
  if (plan.tile_rows > 1) {
    constexpr uint32_t kMostSubgroupsOfAny = 32;  // no device guarantees more per workgroup
    const uint32_t most = std::min(1024u, kMostSubgroupsOfAny * lanes);
    const uint32_t group_lanes =
        is_cpu(caps) ? lanes
                     : group_size(caps, std::clamp(pairs_of(shape), std::min(128u, most), most));
    plan.group = KernelPlan{
        .pipeline = {.kernel = "group_experts",
                     .constants = params::GroupExpertsConstants{.kWorkgroupSize = group_lanes,
                                                                .kExperts = shape.experts},
                     .subgroup_size = lanes},
        .groups = {.x = shape.experts}};
  }
  if (plan.down.sums) return;
  const uint32_t combine_lanes = is_cpu(caps) ? lanes : group_size(caps, 128);
  plan.combine = KernelPlan{
      .pipeline = {.kernel = "combine_experts",
                   .constants = params::CombineExpertsConstants{.kWorkgroupSize = combine_lanes,
                                                                .kUsed = shape.used,
                                                                .kGrouped = plan.group ? 1u : 0u}},
      .groups = {.x = divide_up(shape.width / 4, combine_lanes), .y = shape.rows}};
}

}  // namespace

ExpertScratch expert_scratch(const ExpertsPlan& plan, const ExpertsShape& shape) {
  ExpertScratch scratch;
  const auto place = [&](ExpertScratch::Part& part, uint64_t bytes) {
    part = {scratch.total_bytes, bytes};
    scratch.total_bytes += round_up(bytes, 256);
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
  if (plan.combine) place(scratch.results, positions * shape.width * 4);
  return scratch;
}

ExpertsPlan choose_experts(const DeviceCaps& caps, const ExpertsShape& shape, bool deterministic) {
  const ExpertProductShape gate_up{shape.gate_up, shape.width, 2 * shape.mlp_width, true};
  const ExpertProductShape down{shape.down, shape.mlp_width, shape.width, false};
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
    const std::optional<ExpertProduct> sums = choose_row_sums(caps, shape);
    plan.down = sums ? *sums : choose_row_product(caps, down, plan.tiles);
    if (const auto few = deterministic ? std::nullopt : choose_few_experts(caps, shape)) {
      plan.gate_up = few->gate_up;
      plan.down = few->down;
      plan.halves = true;
    }
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
          KernelPlan{.pipeline = {.kernel = "half_rows",
                                  .constants = params::HalfRowsConstants{.kWorkgroupSize = lanes}},
                     .groups = {.x = divide_up(shape.width / 8, lanes), .y = shape.rows}};
    }
  }
  plan_lists(caps, shape, plan);
  plan.scratch_bytes = expert_scratch(plan, shape).total_bytes;
  return plan;
}

}  // namespace hearth
