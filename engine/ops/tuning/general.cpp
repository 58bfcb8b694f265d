#include <algorithm>

#include "engine/ops/kernel_plan.h"
#include "engine/ops/tuning/profile.h"
#include "runtime/chain.h"

// What capabilities do not decide has the value that was measured on an H200, if it is not extreme.
namespace hearth {
namespace {

// Tiles that need little shared memory and few registers, for any matrix units.
constexpr Tile kTiles[] = {
    {16, 64, 64, 16, 16, 4, 2}, {32, 128, 64, 32, 16, 2, 1}, {48, 64, 64, 48, 16, 2, 2},
    {64, 64, 64, 64, 16, 2, 2}, {96, 64, 64, 48, 32, 2, 1},  {128, 128, 32, 64, 64, 2, 1},
};

}  // namespace

TuningProfile general_profile(const DeviceCaps& caps) {
  // A workgroup of 256 lanes suits every GPU we know of. Two of them per multiprocessor hide each
  // other's waiting.
  const uint32_t lanes = group_size(caps, 256);
  // GPUs with nothing but subgroups of 64 (AMD's GCN) have 64 registers per lane if 4 subgroups are
  // to share a SIMD; others have twice as many or more. docs/portability.md
  const bool few_registers = caps.min_subgroup_size >= 64;
  return {
      .name = "general",
      .tiles = {.floats = kTiles,
                .quantized = kTiles,
                .scalars = kScalarTiles,
                .many_rows = 112,
                .part_inputs = 256,
                .last_inputs = 256,
                .last_split_inputs = 160,
                .most_splits = 16,
                .most_last_splits = 8,
                .fewest_split_steps = 4,
                .integer_matvec_rows = 2,
                .matvec_rows = 1},
      .matvec = {.float_outputs = few_registers ? 1u : 2u,
                 .quantized_outputs = 1,
                 .more_float_outputs = few_registers ? 1u : 2u,
                 .more_quantized_outputs = 1,
                 .few_rows = 2,
                 .large_outputs = 8192,
                 .small_loads = 4,
                 .one_row_lanes = 256,
                 .lanes = 128},
      .team = {.loads = 4,
               .lanes = lanes,
               .chained_lanes = lanes,
               .resident_lanes = 1024,
               .most_rounds = 8,
               .small_rounds = 8,
               .reread_outputs = 1024,
               .reread_bytes = 24 << 20},
      .integer = {.most_lanes = lanes,
                  .group_lanes = lanes,
                  .resident_groups = 2,
                  .most_rounds = 8,
                  .few_rows = 2,
                  .few_rows_pieces = 4,
                  .more_rows_pieces = 2},
      // 16 subgroups of 32 lanes with 128 registers each are all registers of a multiprocessor.
      .few_rows = {.floats = FewRowsTeam{16, 1}, .quantized = FewRowsTeam{16, 1}},
      // kTiles begin with tiles of 16 rows, as few as one fragment has with most matrix units, so
      // experts need no others.
      .experts = {.fewest_rows = std::nullopt,
                  .few_subgroups = 16,
                  .gate_rounds = 2,
                  .sum_rounds = 1,
                  .most_routing_groups = 4,
                  .most_waves = 4,
                  .full_percent = 90,
                  .float_tile_rows = 16,
                  .quantized_tile_rows = 24},
      .attention = {.short_context = 767,
                    .subgroups = 8 * multiprocessors(caps),
                    .prompt_groups = 4 * multiprocessors(caps),
                    .split_keys = 128,
                    .few_subgroups = 2,
                    .few_subgroups_split_keys = 256,
                    .direct = {.most_subgroups = 8, .long_subgroups = 2, .more_long_subgroups = 4},
                    .rows = {.fewest_subgroups = 2,
                             .most_subgroups = 8,
                             .most_quantized_subgroups = 4,
                             .long_subgroups = 8,
                             .several_rows_subgroups = 4,
                             .loads = 4,
                             .many_subgroups_loads = 2,
                             .quantized_loads = 8,
                             .query_elements = few_registers ? 16u : 64u,
                             .most_scores = 32,
                             .most_run = few_registers ? 1u : 8u,
                             .loads_ahead = !few_registers,
                             .waves = 2},
                    .lanes = {.subgroups = 4, .keys = 32},
                    .quantized_lanes = {.subgroups = 8, .keys = 64},
                    .short_direct_head = 128},
      .norm = {.one_row_lanes = 512, .lanes = 256},
      .activation = {.many_rows = 64},
      .sampling = {.few_rows = 16, .resident_groups = 2, .most_row_groups = 8},
      // The number of workgroups only moves atomic operations between two counters, so any that is
      // neither tiny nor large will do.
      .chain = {.most_rows = 64, .large_dispatch = Chain::kDefaultLargeDispatch},
  };
}

}  // namespace hearth
