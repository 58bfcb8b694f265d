// attention_tile: prompts on any matrix units that multiply f16 into f32.
#include "params/attention_tile.h"

#include <algorithm>
#include <optional>

#include "engine/ops/attention/family.h"

namespace hearth {
namespace {

// The fragment that it uses: the largest one whose rows a subgroup's lanes can divide.
std::optional<CoopmatShape> tile_fragment(const DeviceCaps& caps, uint32_t head_size) {
  std::optional<CoopmatShape> best;
  if (!caps.features.coopmat || !caps.features.float16) return best;
  for (const CoopmatShape& shape : caps.coopmat_shapes) {
    const bool types = shape.a == ScalarType::kF16 && shape.b == ScalarType::kF16 &&
                       shape.c == ScalarType::kF32 && shape.result == ScalarType::kF32;
    const bool sizes = shape.m % 8 == 0 && shape.n % 8 == 0 && shape.k % 8 == 0 &&
                       head_size % shape.n == 0 && head_size % shape.k == 0 &&
                       caps.subgroup_size % shape.m == 0;
    if (!types || !sizes) continue;
    if (!best || shape.m * shape.n * shape.k > best->m * best->n * best->k) best = shape;
  }
  return best;
}

// The shared memory that the kernel declares.
uint32_t attention_tile_bytes(uint32_t rows, uint32_t keys, uint32_t head_size) {
  const uint32_t pieces = 2 * keys * (head_size / 8 + 1) + rows * (keys / 4 + 1);
  return pieces * 16 + rows * (4 + 4 + 8);
}

struct TileLayout {
  CoopmatShape fragment;
  uint32_t subgroups, keys;  // keys at a time

  uint32_t rows() const { return subgroups * fragment.m; }
};

// Empty if the device has no such fragments, or no room.
std::optional<TileLayout> tile_layout(const DeviceCaps& caps, const AttentionShape& shape) {
  const std::optional<CoopmatShape> fragment = tile_fragment(caps, shape.head_size);
  if (!fragment) return std::nullopt;
  TileLayout layout{.fragment = *fragment,
                    .subgroups = std::min(8u, group_size(caps, 256) / caps.subgroup_size),
                    .keys = 0};
  if (heads_of_group(shape) > layout.rows()) return std::nullopt;
  // The smallest tile of keys that the lanes can divide, or the largest with few enough products to
  // be unrolled.
  constexpr uint32_t kMostProducts = 16;
  const uint32_t row_lanes = caps.subgroup_size / fragment->m;
  for (const uint32_t keys : {16u, 32u, 64u}) {
    if (keys % fragment->n != 0 || keys % fragment->k != 0 || keys / 8 % row_lanes != 0) continue;
    const uint32_t products = keys / fragment->n * (shape.head_size / fragment->k);
    if (layout.keys != 0 && products > kMostProducts) break;
    if (attention_tile_bytes(layout.rows(), keys, shape.head_size) > caps.limits.max_shared_bytes)
      break;
    layout.keys = keys;
  }
  return layout.keys == 0 ? std::nullopt : std::optional(layout);
}

bool supports_attention_tile(const AttentionRequest& request) {
  return tile_layout(request.caps, request.shape).has_value();
}

AttentionListPlan plan_attention_tile(const AttentionRequest& request) {
  const auto& [caps, shape, tuning, one_token, tokens, deterministic] = request;
  const TileLayout layout = *tile_layout(caps, shape);
  CoopmatShape halves = layout.fragment;
  halves.c = halves.result = ScalarType::kF16;
  const bool direct = std::ranges::find(caps.coopmat_shapes, halves) != caps.coopmat_shapes.end();
  const HeadTile tile{.tokens = layout.rows() / heads_of_group(shape), .rows = layout.rows()};
  return {.tokens = tile.tokens,
          .kernel = {.pipeline = {.kernel = attention_kernel("attention_tile", shape),
                                  .constants =
                                      params::AttentionTileConstants{
                                          .kWorkgroupSize = layout.subgroups * caps.subgroup_size,
                                          .kSubgroupSize = caps.subgroup_size,
                                          .kSubgroups = layout.subgroups,
                                          .kHeadSize = shape.head_size,
                                          .kM = layout.fragment.m,
                                          .kN = layout.fragment.n,
                                          .kK = layout.fragment.k,
                                          .kKeys = layout.keys,
                                          .kDirect = direct ? 1u : 0u},
                                  .subgroup_size = caps.subgroup_size},
                     .groups = tile_groups(shape, tile)}};
}

}  // namespace

const AttentionFamily kAttentionTile{"attention_tile", supports_attention_tile,
                                     plan_attention_tile};

}  // namespace hearth
