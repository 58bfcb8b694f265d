// The numbers of kernel choice that only a measurement can decide: tiles, lanes, how much work per
// workgroup. The kernel families have the rules, a profile the numbers. A GPU family that was
// measured has a profile of its own; every other device gets the general one, which is derived from
// its capabilities and says nothing about a device that those do not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "engine/ops/tuning/tile.h"
#include "runtime/device_caps.h"

namespace hearth {

// Products of many rows on matrix units. Lists are sorted by rows. Up to `many_rows` rows fit into
// one tile, so that weights are read once; more use any of the tiles from that row count on. Among
// tiles of the same rows the cost decides (matmul/tiles.cpp).
struct TilesTuning {
  std::span<const Tile> floats, quantized;
  uint32_t many_rows = 0;
  // What split-k costs, as inputs that could be multiplied meanwhile: writing and reading partial
  // sums (twice that with several tiles of rows); or, if the last workgroup of a tile adds them up,
  // that much at all and per split.
  uint64_t part_inputs = 0, last_inputs = 0, last_split_inputs = 0;
};

// matvec_float: the rows of weights that a subgroup multiplies together. More of them use x more
// often, but need registers for sums.
struct FloatTuning {
  uint32_t float_outputs = 0, quantized_outputs = 0;  // large matrices, one or two rows of x
  uint32_t more_float_outputs = 0, more_quantized_outputs = 0;  // more rows of x
};

// One row of float weights in matvec_team.
struct TeamTuning {
  uint32_t loads = 0;          // in flight per lane
  uint32_t lanes = 0;          // per workgroup
  uint32_t chained_lanes = 0;  // the same in a chain, and what a multiprocessor has room for
  // Rounds that a workgroup stays; with more work, smaller ones stay for `small_rounds`.
  uint32_t most_rounds = 0, small_rounds = 0;
  // Every row may read a router's weights again, because a cache holds them, if all rows together
  // read at most this much.
  uint64_t reread_bytes = 0;
};

// matvec_integer.
struct IntegerTuning {
  uint32_t most_lanes = 0;   // per workgroup
  uint32_t group_lanes = 0;  // of a workgroup of several teams; larger ones are alone
  uint32_t most_rounds = 0;
  bool wide_q4_0 = false;  // registers for twice the outputs of Q4_0
};

// matmul_team: the subgroups for which a multiprocessor has registers, and the blocks of x that
// each keeps.
struct FewRowsTeam {
  uint32_t subgroups, blocks;
};
struct FewRowsTuning {  // up to 8 rows, and up to 16; empty: tiles are better
  std::optional<FewRowsTeam> floats, quantized, quantized_two_columns;
};

struct ExpertsTuning {
  // On matrix units, in addition to the tiles of other products: one matrix alone has faster
  // kernels for so few rows.
  Tile fewest_rows;
  uint32_t few_subgroups = 0;  // of experts_few, per multiprocessor
  // Rounds of experts_one_row that are in flight, in its products with and without gates.
  uint32_t gate_rounds = 0, sum_rounds = 0;
  // Loading and decoding the weights of a tile takes as long as the products of this many rows.
  uint32_t float_tile_rows = 0, quantized_tile_rows = 0;
};

struct PaceTuning {
  uint32_t short_context = 0;  // tokens up to which start and end dominate; ends a range of buckets
  uint32_t subgroups = 0;      // that keep the device busy with single tokens
  uint32_t prompt_groups = 0;  // workgroups that do so with prompts
  // Elements of the queries that a lane of attention_rows holds, beside as many of the result.
  uint32_t query_elements = 0;
  uint32_t most_run = 0;     // keys that such a lane loads together
  bool loads_ahead = false;  // whether it has registers to load the next ones meanwhile
  // The largest head for which attention_direct is worth its code for one token of one sequence
  // over a short context.
  uint32_t short_direct_head = 0;
  uint32_t longer_context = 0;  // where the next range of buckets ends
  // Up to this many rows, a step with several tokens per sequence is faster with attention_direct,
  // one token at a time, than with a prompt kernel: over short contexts with an f16 cache, over
  // short ones with a quantized cache, and over longer ones with an f16 cache. 0: never.
  uint32_t one_token_rows = 0, quantized_one_token_rows = 0, longer_one_token_rows = 0;
};

struct NormTuning {
  uint32_t one_row_lanes = 0, lanes = 0;  // per row, for one row and for several
};

struct TuningProfile {
  std::string_view name;
  TilesTuning tiles;
  FloatTuning matvec;
  TeamTuning team;
  IntegerTuning integer;
  FewRowsTuning few_rows;
  ExpertsTuning experts;
  PaceTuning attention;
  NormTuning norm;
  uint32_t chained_rows = 0;  // most rows of a step whose kernels form a chain (runtime/chain.h)
};

// The profile of a device: its family's, or general_profile().
TuningProfile tuning_profile(const DeviceCaps& caps);

TuningProfile general_profile(const DeviceCaps& caps);
TuningProfile hopper_profile();

}  // namespace hearth
