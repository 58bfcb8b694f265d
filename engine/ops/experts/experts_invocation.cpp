// experts_invocation: for CPUs. One invocation per result and tile.
#include "params/experts_invocation.h"

#include <algorithm>
#include <bit>

#include "engine/ops/experts/family.h"
#include "engine/ops/matmul/family.h"

namespace hearth {
namespace {

ExpertProduct invocation_product(const DeviceCaps& caps, const ExpertProductShape& product,
                                 uint32_t tile_rows, uint32_t tiles) {
  const uint32_t results = product.results();
  const uint32_t lanes =
      std::max(caps.subgroup_size, std::min(group_size(caps, 64), std::bit_floor(results)));
  return {.kernel = {
              .pipeline = {.kernel = variant("experts_invocation", product.format),
                           .constants = params::ExpertsInvocationConstants{.kWorkgroupSize = lanes,
                                                                           .kRows = tile_rows}},
              .groups = {.x = divide_up(results, lanes), .y = tiles}}};
}

// How many rows of an expert an invocation computes at once on a CPU, where the weights are then
// decoded once for all.
uint32_t cpu_tile_rows(const ExpertsShape& shape) {
  return std::bit_floor(std::clamp(pairs_of(shape) / shape.experts, 1u, 8u));
}

bool supports_experts_invocation(const ExpertsRequest& request) { return is_cpu(request.caps); }

ExpertsPlan plan_experts_invocation(const ExpertsRequest& request) {
  const auto& [caps, shape, deterministic] = request;
  ExpertsPlan plan;
  plan.tile_rows = shares_experts(request) ? cpu_tile_rows(shape) : 1;
  plan.tiles = most_tiles(shape, plan.tile_rows);
  plan.gate_up = invocation_product(caps, gate_up_product(shape), plan.tile_rows, plan.tiles);
  plan.down = invocation_product(caps, down_product(shape), plan.tile_rows, plan.tiles);
  return plan;
}

}  // namespace

const ExpertsFamily kExpertsInvocation{"experts_invocation", supports_experts_invocation,
                                       plan_experts_invocation};

}  // namespace hearth
