#include "engine/ops/matmul/tile_family.h"

namespace hearth {

const TileFamily& tile_family(TileKernel kernel) {
  switch (kernel) {
    case TileKernel::kCoopmat:
      return kMatmulCoopmat;
    case TileKernel::kDirect:
      return kMatmulDirect;
    case TileKernel::kWide:
      return kMatmulWide;
    case TileKernel::kScalar:
      break;
  }
  return kMatmulTile;
}

bool fits_group(const TileRequest& request, uint32_t shared_bytes) {
  const DeviceLimits& limits = request.caps.limits;
  return tile_lanes(request.caps, request.tile) <= limits.max_group_invocations &&
         shared_bytes <= limits.max_shared_bytes;
}

bool lanes_make_fragments(const Tile& tile) {
  return tile.kernel == TileKernel::kDirect || tile.kernel == TileKernel::kWide;
}
uint32_t tile_parts(const Tile& tile) {
  return tile.rows / tile.part_rows * (tile.outputs / tile.part_outputs);
}

uint32_t tile_lanes(const DeviceCaps& caps, const Tile& tile) {
  return tile_parts(tile) * (tile.kernel == TileKernel::kScalar ? 1 : caps.subgroup_size);
}

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

std::optional<CoopmatShape> coopmat_shape(const DeviceCaps& caps) { return fragment_of(caps, 16); }

uint32_t fragment_outputs(const DeviceCaps& caps, const Tile& tile) {
  return lanes_make_fragments(tile) ? kLaneFragment : fragment_of(caps, tile.part_outputs)->n;
}

}  // namespace hearth
