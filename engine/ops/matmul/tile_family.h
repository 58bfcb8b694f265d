// The kernels of tiles. A profile lists tiles, and each names its kernel (tuning/tile.h); tiles.cpp
// counts waves to choose among those that a device supports.
#pragma once

#include <optional>

#include "engine/ops/matmul/family.h"
#include "engine/ops/tuning/tile.h"

namespace hearth {

struct TileRequest {
  const DeviceCaps& caps;
  const MatmulShape& shape;
  const Tile& tile;
  uint32_t splits = 1;  // of k
};

using TileFamily = KernelFamily<TileRequest, PipelineInfo>;
extern const TileFamily kMatmulTile;  // matmul_tile.cpp, and so on
extern const TileFamily kMatmulCoopmat;
extern const TileFamily kMatmulDirect;
extern const TileFamily kMatmulWide;

const TileFamily& tile_family(TileKernel kernel);

// Whether workgroups of the tile's size with this much shared memory are possible.
bool fits_group(const TileRequest& request, uint32_t shared_bytes);

// Whether lanes fill fragments of kLaneFragment outputs themselves.
bool lanes_make_fragments(const Tile& tile);
inline constexpr uint32_t kLaneFragment = 8;

// The parts of a tile, one per subgroup or lane, and the invocations of a workgroup.
uint32_t tile_parts(const Tile& tile);
uint32_t tile_lanes(const DeviceCaps& caps, const Tile& tile);

// The fragments that a subgroup's part of a tile consists of: the largest of the device.
std::optional<CoopmatShape> fragment_of(const DeviceCaps& caps, uint32_t part_outputs);

// Outputs of a tile's fragments. REQUIRES: it has some.
uint32_t fragment_outputs(const DeviceCaps& caps, const Tile& tile);

}  // namespace hearth
