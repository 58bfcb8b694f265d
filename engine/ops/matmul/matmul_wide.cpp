// matmul_wide: many rows on matrix units with a known fragment layout. Operands are in shared
// memory in the order of fragments, without padding, so tiles are large.
#include "params/matmul_wide.h"

#include "engine/ops/matmul/tile_family.h"

namespace hearth {
namespace {

bool supports_matmul_wide(const TileRequest& request) {
  const Tile& tile = request.tile;
  return request.caps.features.lane_fragments && request.shape.inputs % tile.inputs == 0 &&
         fits_group(request, (tile.rows + tile.outputs) * tile.inputs * 2);
}

PipelineInfo plan_matmul_wide(const TileRequest& request) {
  const auto& [caps, shape, tile, splits] = request;
  // Inputs are a constant where that was measured to be faster: with more weights than x to load.
  const bool whole = shape.rows % tile.rows == 0 && shape.outputs % tile.outputs == 0;
  const bool constant = whole && tile.outputs > tile.rows && format_info(shape.format).is_float();
  return {.kernel = variant("matmul_wide", shape.format),
          .constants = params::MatmulWideConstants{.kWorkgroupSize = tile_lanes(caps, tile),
                                                   .kTileRows = tile.rows,
                                                   .kTileOutputs = tile.outputs,
                                                   .kSplits = splits,
                                                   .kSubgroupRows = tile.part_rows,
                                                   .kSubgroupOutputs = tile.part_outputs,
                                                   .kSubgroups = tile_parts(tile),
                                                   .kInputs = constant ? shape.inputs : 0},
          .subgroup_size = caps.subgroup_size};
}

}  // namespace

const TileFamily kMatmulWide{"matmul_wide", supports_matmul_wide, plan_matmul_wide};

}  // namespace hearth
