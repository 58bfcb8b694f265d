// matmul_tile: tiles of any format without matrix units. Each lane computes a part of a tile.
#include "params/matmul_tile.h"

#include "engine/ops/matmul/tile_family.h"

namespace hearth {
namespace {

bool supports_matmul_tile(const TileRequest& request) {
  const Tile& tile = request.tile;
  return fits_group(request, (tile.rows + tile.outputs) * (tile.inputs / 4 + 2) * 16);
}

PipelineInfo plan_matmul_tile(const TileRequest& request) {
  const auto& [caps, shape, tile, splits] = request;
  return {.kernel = variant("matmul_tile", shape.format),
          .constants = params::MatmulTileConstants{.kWorkgroupSize = tile_lanes(caps, tile),
                                                   .kTileRows = tile.rows,
                                                   .kTileOutputs = tile.outputs,
                                                   .kTileInputs = tile.inputs,
                                                   .kSplits = splits,
                                                   .kLaneRows = tile.part_rows,
                                                   .kLaneOutputs = tile.part_outputs}};
}

}  // namespace

const TileFamily kMatmulTile{"matmul_tile", supports_matmul_tile, plan_matmul_tile};

}  // namespace hearth
