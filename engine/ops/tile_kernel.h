// A tile as a kernel: which pipeline computes it, with which workgroup and fragments. Part of
// choose_tile().
#pragma once

#include <optional>

#include "engine/ops/kernel_choice.h"
#include "engine/ops/tuning/tile.h"

namespace hearth {

// Whether lanes fill fragments of 16 rows and kLaneFragment outputs themselves.
bool lanes_make_fragments(const Tile& tile);
inline constexpr uint32_t kLaneFragment = 8;

// The parts of a tile, one per subgroup or lane, and the invocations of a workgroup.
uint32_t tile_parts(const Tile& tile);
uint32_t tile_lanes(const DeviceCaps& caps, const Tile& tile);

// The fragments that a subgroup's part of a tile consists of: the largest of the device.
std::optional<CoopmatShape> fragment_of(const DeviceCaps& caps, uint32_t part_outputs);

// Outputs of a tile's fragments. REQUIRES: it has some.
uint32_t fragment_outputs(const DeviceCaps& caps, const Tile& tile);

PipelineInfo tile_kernel(const DeviceCaps& caps, const MatmulShape& shape, const Tile& tile,
                         uint32_t splits);

}  // namespace hearth
