// matmul_direct: few rows on matrix units with a known fragment layout. Weights go from memory
// straight into fragments.
#include "params/matmul_direct.h"

#include "engine/ops/matmul/tile_family.h"

namespace hearth {
namespace {

bool supports_matmul_direct(const TileRequest& request) {
  const Tile& tile = request.tile;
  return request.caps.features.lane_fragments && request.shape.inputs % tile.inputs == 0 &&
         fits_group(request, tile.buffers * tile.rows * tile.inputs * 2);
}

PipelineInfo plan_matmul_direct(const TileRequest& request) {
  const auto& [caps, shape, tile, splits] = request;
  return {.kernel = variant("matmul_direct", shape.format),
          .constants = params::MatmulDirectConstants{.kWorkgroupSize = tile_lanes(caps, tile),
                                                     .kTileRows = tile.rows,
                                                     .kTileOutputs = tile.outputs,
                                                     .kBuffers = tile.buffers,
                                                     .kSplits = splits,
                                                     .kSubgroupOutputs = tile.part_outputs,
                                                     .kSubgroups = tile_parts(tile)},
          .subgroup_size = caps.subgroup_size};
}

}  // namespace

const TileFamily kMatmulDirect{"matmul_direct", supports_matmul_direct, plan_matmul_direct};

}  // namespace hearth
