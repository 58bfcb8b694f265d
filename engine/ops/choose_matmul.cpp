#include <span>

#include <fmt/format.h>

#include "engine/ops/kernel_choice.h"
#include "params/split_rows.h"

namespace hearth {
namespace {

// record_matmul puts in what the product really ends with.
constexpr uint32_t kNoEpilogue = 0;

std::string variant(std::string_view kernel, WeightFormat format) {
  return fmt::format("{}.{}", kernel, format_info(format).header);
}

// An invocation a row of the matrix: no barrier, no reduction. Few rows of x at a time, so that
// their sums stay in registers.
MatmulPlan choose_cpu(const DeviceCaps& caps, const MatmulShape& shape, uint32_t rows_at_once) {
  const uint32_t lanes = group_size(caps, 64);
  return {.multiply = {.pipeline = {.kernel = variant("matmul_invocation", shape.format),
                                    .constants = {lanes, kNoEpilogue, rows_at_once}},
                       .groups = {.x = divide_up(shape.outputs, lanes),
                                  .y = divide_up(shape.rows, rows_at_once)}}};
}

// Float arithmetic. One vector: few outputs a subgroup make many subgroups, and the loads of
// `ahead` steps keep the memory busy. More vectors: each weight is used more often, so registers go
// to sums.
KernelPlan choose_float(const DeviceCaps& caps, const MatmulShape& shape, uint32_t rows_at_once) {
  const uint32_t lanes = group_size(caps, 128);
  const bool quantized = !format_info(shape.format).is_float();
  const bool many_outputs = shape.outputs >= 8192;
  const uint32_t outputs = rows_at_once > 2 ? 4 : many_outputs ? 2 : 1;
  const uint32_t ahead = quantized || rows_at_once > 2 || many_outputs ? 1 : 4;
  return {.pipeline = {.kernel = variant("matvec_float", shape.format),
                       .constants = {lanes, kNoEpilogue, rows_at_once, outputs, ahead},
                       .subgroup_size = caps.subgroup_size},
          .groups = {.x = divide_up(shape.outputs, outputs * lanes / caps.subgroup_size),
                     .y = divide_up(shape.rows, rows_at_once)}};
}

MatmulPlan choose_integer(const DeviceCaps& caps, const MatmulShape& shape, uint32_t rows_at_once) {
  const uint32_t lanes = group_size(caps, 128);
  // Formats of 256 weights a block read a shared header, which is better not fetched far ahead.
  const bool super_blocks = format_info(shape.format).block_weights > kPieceWeights;
  const uint32_t outputs = rows_at_once <= 2 ? 1 : rows_at_once <= 4 ? 2 : 4;
  const uint32_t ahead = rows_at_once > 2 ? 2 : super_blocks ? 1 : 4;
  const uint32_t pieces = shape.rows * (shape.inputs / kPieceWeights);
  return {
      .split = KernelPlan{.pipeline = {.kernel = "split_rows", .constants = {lanes}},
                          .groups = {.x = divide_up(pieces, lanes)}},
      .multiply = {.pipeline = {.kernel = variant("matvec_integer", shape.format),
                                .constants = {lanes, kNoEpilogue, rows_at_once, outputs, ahead},
                                .subgroup_size = caps.subgroup_size},
                   .groups = {.x = divide_up(shape.outputs, outputs * lanes / caps.subgroup_size),
                              .y = divide_up(shape.rows, rows_at_once)}},
      .scratch_bytes = uint64_t{pieces} * params::kSplitPlanes * 16};
}

// A tile of sums that a group computes, and how its subgroups or lanes share it.
struct Tile {
  uint32_t rows, outputs, inputs;
  uint32_t part_rows, part_outputs;  // of a subgroup (coopmat) or of a lane (scalar)
  uint32_t wanted_groups;            // to fill a large GPU: k is split where there are fewer tiles
};

// By the number of rows: as few as hold them all, so that the weights are read once; beyond 64,
// large tiles that do much work for each byte. Measured on an H200: docs/measurements.md.
constexpr Tile kCoopmatTiles[] = {
    {.rows = 16,
     .outputs = 64,
     .inputs = 64,
     .part_rows = 16,
     .part_outputs = 16,
     .wanted_groups = 1024},
    {.rows = 32,
     .outputs = 64,
     .inputs = 64,
     .part_rows = 32,
     .part_outputs = 16,
     .wanted_groups = 512},
    {.rows = 64,
     .outputs = 128,
     .inputs = 32,
     .part_rows = 32,
     .part_outputs = 32,
     .wanted_groups = 256},
    {.rows = 128,
     .outputs = 128,
     .inputs = 32,
     .part_rows = 64,
     .part_outputs = 64,
     .wanted_groups = 256},
};
constexpr Tile kScalarTiles[] = {
    {.rows = 16,
     .outputs = 64,
     .inputs = 32,
     .part_rows = 4,
     .part_outputs = 4,
     .wanted_groups = 512},
    {.rows = 32,
     .outputs = 64,
     .inputs = 32,
     .part_rows = 4,
     .part_outputs = 4,
     .wanted_groups = 512},
    {.rows = 64,
     .outputs = 64,
     .inputs = 32,
     .part_rows = 4,
     .part_outputs = 4,
     .wanted_groups = 256},
};

uint32_t tile_parts(const Tile& tile) {
  return tile.rows / tile.part_rows * (tile.outputs / tile.part_outputs);
}

uint32_t tile_lanes(const DeviceCaps& caps, const Tile& tile, bool coopmat) {
  return tile_parts(tile) * (coopmat ? caps.subgroup_size : 1);
}

// What matmul_tile and its engine declare as shared.
uint32_t tile_shared_bytes(const Tile& tile, const std::optional<CoopmatShape>& fragment) {
  const uint32_t vec_bytes = fragment ? 8 : 16;
  const uint32_t stride = tile.inputs / 4 + 2;
  const uint32_t slots = fragment ? tile_parts(tile) * fragment->m * fragment->n * 4 : 0;
  return (tile.rows + tile.outputs) * stride * vec_bytes + slots;
}

// The first that holds all rows, of those the device has room for; else the largest of those.
const Tile& tile_for(const DeviceCaps& caps, std::span<const Tile> tiles,
                     const std::optional<CoopmatShape>& fragment, uint32_t rows) {
  const Tile* best = &tiles.front();
  for (const Tile& tile : tiles) {
    if (tile_lanes(caps, tile, fragment.has_value()) > caps.limits.max_group_invocations ||
        tile_shared_bytes(tile, fragment) > caps.limits.max_shared_bytes)
      continue;
    best = &tile;
    if (rows <= tile.rows) break;
  }
  return *best;
}

// Few tiles leave a large GPU idle: then the groups of a tile share k between them.
uint32_t splits_for(uint32_t wanted_groups, uint32_t tiles, uint32_t steps) {
  constexpr uint32_t kMostSplits = 16, kFewestSteps = 4;
  return std::clamp(wanted_groups / tiles, 1u, std::clamp(steps / kFewestSteps, 1u, kMostSplits));
}

MatmulPlan choose_tile(const DeviceCaps& caps, const MatmulShape& shape) {
  const std::optional<CoopmatShape> fragment = coopmat_shape(caps);
  const std::span<const Tile> tiles =
      fragment ? std::span<const Tile>(kCoopmatTiles) : std::span<const Tile>(kScalarTiles);
  const Tile& tile = tile_for(caps, tiles, fragment, shape.rows);
  const uint32_t lanes = tile_lanes(caps, tile, fragment.has_value());
  const uint32_t down = divide_up(shape.rows, tile.rows);
  const uint32_t across = divide_up(shape.outputs, tile.outputs);
  const uint32_t splits =
      splits_for(tile.wanted_groups, down * across, divide_up(shape.inputs, tile.inputs));

  MatmulPlan plan;
  PipelineInfo& info = plan.multiply.pipeline;
  info.kernel = variant(fragment ? "matmul_tile.coopmat" : "matmul_tile.scalar", shape.format);
  info.constants = {lanes,       kNoEpilogue, tile.rows,      tile.outputs,
                    tile.inputs, splits,      tile.part_rows, tile.part_outputs};
  if (fragment) {
    info.constants.insert(info.constants.end(),
                          {fragment->m, fragment->n, fragment->k, tile_parts(tile)});
    info.subgroup_size = caps.subgroup_size;
  }
  plan.multiply.groups = {.x = down, .y = across, .z = splits};
  if (splits > 1) {
    const uint32_t reduce_lanes = group_size(caps, 256);
    plan.reduce = KernelPlan{
        .pipeline = {.kernel = "matmul_reduce", .constants = {reduce_lanes, kNoEpilogue, splits}},
        .groups = {.x = divide_up(shape.rows * shape.outputs, reduce_lanes)}};
    plan.scratch_bytes = uint64_t{splits} * shape.rows * shape.outputs * 4;
  }
  return plan;
}

}  // namespace

std::optional<CoopmatShape> coopmat_shape(const DeviceCaps& caps) {
  std::optional<CoopmatShape> best;
  if (!caps.features.coopmat || !caps.features.float16) return best;
  for (const CoopmatShape& shape : caps.coopmat_shapes) {
    const bool fits = shape.a == ScalarType::kF16 && shape.b == ScalarType::kF16 &&
                      shape.c == ScalarType::kF32 && shape.result == ScalarType::kF32 &&
                      16 % shape.m == 0 && 16 % shape.n == 0 && 32 % shape.k == 0;
    if (fits && (!best || shape.m * shape.n * shape.k > best->m * best->n * best->k)) best = shape;
  }
  return best;
}

MatmulPlan choose_matmul(const DeviceCaps& caps, const MatmulShape& shape, bool deterministic) {
  // A row's result depends on the kernel and its constants, so one fixed shape makes it the same
  // alone and in a batch.
  constexpr uint32_t kDeterministicRows = 4;
  const bool quantized = !format_info(shape.format).is_float();
  const uint32_t most = is_cpu(caps) ? 4 : kMaxMatvecRows;
  const uint32_t rows_at_once =
      deterministic ? kDeterministicRows : std::clamp(shape.rows, 1u, most);
  if (is_cpu(caps)) return choose_cpu(caps, shape, rows_at_once);

  // Float weights for three rows or more cost lanes so much arithmetic that matrix units are ahead,
  // though most of their tile is empty.
  const uint32_t matvec_rows = !quantized && coopmat_shape(caps) ? 2 : kMaxMatvecRows;
  if (shape.rows > matvec_rows && !deterministic) return choose_tile(caps, shape);
  if (quantized && caps.features.integer_dot) return choose_integer(caps, shape, rows_at_once);
  return {.multiply = choose_float(caps, shape, rows_at_once)};
}

}  // namespace hearth
