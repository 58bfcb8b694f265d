// matmul_coopmat: tiles on any matrix units that multiply f16 into f32. Operands are in shared
// memory.
#include "params/matmul_coopmat.h"

#include <algorithm>

#include "engine/ops/matmul/tile_family.h"

namespace hearth {
namespace {

bool supports_matmul_coopmat(const TileRequest& request) {
  const Tile& tile = request.tile;
  const std::optional<CoopmatShape> fragment = fragment_of(request.caps, tile.part_outputs);
  if (!fragment) return false;
  // For combining gate and up, one row of result fragments per subgroup.
  const uint32_t operands = (tile.rows + tile.outputs) * (tile.inputs / 8 + 1) * 16;
  const uint32_t sums = tile_parts(tile) * fragment->m * tile.part_outputs * 4;
  return fits_group(request, std::max(operands, sums));
}

PipelineInfo plan_matmul_coopmat(const TileRequest& request) {
  const auto& [caps, shape, tile, splits] = request;
  const std::optional<CoopmatShape> fragment = fragment_of(caps, tile.part_outputs);
  // Small fragments consist of plain instructions, of which there should be few.
  const uint32_t unroll = fragment->k < 16 ? 1 : tile.inputs / fragment->k;
  return {.kernel = variant("matmul_coopmat", shape.format),
          .constants = params::MatmulCoopmatConstants{.kWorkgroupSize = tile_lanes(caps, tile),
                                                      .kTileRows = tile.rows,
                                                      .kTileOutputs = tile.outputs,
                                                      .kTileInputs = tile.inputs,
                                                      .kSplits = splits,
                                                      .kSubgroupRows = tile.part_rows,
                                                      .kSubgroupOutputs = tile.part_outputs,
                                                      .kFragmentRows = fragment->m,
                                                      .kFragmentOutputs = fragment->n,
                                                      .kFragmentInputs = fragment->k,
                                                      .kSubgroups = tile_parts(tile),
                                                      .kAhead = tile.ahead,
                                                      .kUnroll = unroll,
                                                      .kUnrolledSteps = tile.round},
          .subgroup_size = caps.subgroup_size};
}

}  // namespace

const TileFamily kMatmulCoopmat{"matmul_coopmat", supports_matmul_coopmat, plan_matmul_coopmat};

}  // namespace hearth
