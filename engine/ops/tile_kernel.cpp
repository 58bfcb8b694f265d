#include "engine/ops/tile_kernel.h"

#include "engine/ops/choose_tile.h"
#include "params/matmul_coopmat.h"
#include "params/matmul_direct.h"
#include "params/matmul_tile.h"
#include "params/matmul_wide.h"

namespace hearth {

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

namespace {

PipelineInfo scalar_kernel(const DeviceCaps& caps, const MatmulShape& shape, const Tile& tile,
                           uint32_t splits) {
  return {.kernel = variant("matmul_tile", shape.format),
          .constants = params::MatmulTileConstants{.kWorkgroupSize = tile_lanes(caps, tile),
                                                   .kTileRows = tile.rows,
                                                   .kTileOutputs = tile.outputs,
                                                   .kTileInputs = tile.inputs,
                                                   .kSplits = splits,
                                                   .kLaneRows = tile.part_rows,
                                                   .kLaneOutputs = tile.part_outputs}};
}

PipelineInfo coopmat_kernel(const DeviceCaps& caps, const MatmulShape& shape, const Tile& tile,
                            uint32_t splits) {
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

PipelineInfo direct_kernel(const DeviceCaps& caps, const MatmulShape& shape, const Tile& tile,
                           uint32_t splits) {
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

PipelineInfo wide_kernel(const DeviceCaps& caps, const MatmulShape& shape, const Tile& tile,
                         uint32_t splits) {
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

PipelineInfo tile_kernel(const DeviceCaps& caps, const MatmulShape& shape, const Tile& tile,
                         uint32_t splits) {
  switch (tile.kernel) {
    case TileKernel::kCoopmat:
      return coopmat_kernel(caps, shape, tile, splits);
    case TileKernel::kDirect:
      return direct_kernel(caps, shape, tile, splits);
    case TileKernel::kWide:
      return wide_kernel(caps, shape, tile, splits);
    case TileKernel::kScalar:
      break;
  }
  return scalar_kernel(caps, shape, tile, splits);
}

uint32_t fragment_outputs(const DeviceCaps& caps, const Tile& tile) {
  return lanes_make_fragments(tile) ? kLaneFragment : fragment_of(caps, tile.part_outputs)->n;
}

}  // namespace hearth
