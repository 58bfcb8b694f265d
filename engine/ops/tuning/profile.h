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

// Products of many rows: `floats` and `quantized` on matrix units, `scalars` without. Lists are
// sorted by rows. Up to `many_rows` rows fit into one tile, so that weights are read once; more use
// any of the tiles from that row count on. Among tiles of the same rows the cost decides
// (matmul/tiles.cpp).
struct TilesTuning {
  std::span<const Tile> floats, quantized, scalars;
  uint32_t many_rows = 0;
  // What split-k costs, as inputs that could be multiplied meanwhile: writing and reading partial
  // sums (twice that with several tiles of rows); or, if the last workgroup of a tile adds them up,
  // that much at all and per split.
  uint64_t part_inputs = 0, last_inputs = 0, last_split_inputs = 0;
  // Limits of split-k: splits of all tiles, splits of the last ones, and steps that each has.
  uint32_t most_splits = 0, most_last_splits = 0, fewest_split_steps = 0;
  // With matrix units, products of up to this many rows use matrix-vector kernels nevertheless:
  // matvec_integer, and any other.
  uint32_t integer_matvec_rows = 0, matvec_rows = 0;
};

// matvec_float.
struct FloatTuning {
  // The rows of weights that a subgroup multiplies together. More of them use x more often, but
  // need registers for sums. Of large matrices with up to `few_rows` rows of x, and of any with
  // more; of smaller matrices it is one.
  uint32_t float_outputs = 0, quantized_outputs = 0;
  uint32_t more_float_outputs = 0, more_quantized_outputs = 0;
  uint32_t few_rows = 0;
  uint32_t large_outputs = 0;             // from which on a matrix is large
  uint32_t small_loads = 0;               // in flight per lane, for smaller matrices of floats
  uint32_t one_row_lanes = 0, lanes = 0;  // per workgroup, for one row of x and for several
};

// One row of float weights in matvec_team.
struct TeamTuning {
  uint32_t loads = 0;           // in flight per lane
  uint32_t lanes = 0;           // per workgroup
  uint32_t chained_lanes = 0;   // the same in a chain
  uint32_t resident_lanes = 0;  // that a multiprocessor has room for, more or less
  // Rounds that a workgroup stays; with more work, smaller ones stay for `small_rounds`.
  uint32_t most_rounds = 0, small_rounds = 0;
  // Every row may read a router's weights again, because a cache holds them, if it has at most this
  // many outputs and all rows together read at most this much.
  uint32_t reread_outputs = 0;
  uint64_t reread_bytes = 0;
};

// matvec_integer.
struct IntegerTuning {
  uint32_t most_lanes = 0;       // per workgroup
  uint32_t group_lanes = 0;      // of a workgroup of several teams; larger ones are alone
  uint32_t resident_groups = 0;  // per multiprocessor, if they are not larger
  uint32_t most_rounds = 0;
  // Pieces of weights that a lane multiplies at a time: for up to `few_rows` rows of x (a larger
  // workgroup: for one), and for more.
  uint32_t few_rows = 0, few_rows_pieces = 0, more_rows_pieces = 0;
  // One row of x, one piece at a time, and more outputs of Q4_0 per team than this: twice the
  // pieces, for which there are registers. 0: never.
  uint32_t wide_q4_0_outputs = 0;
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
  // kernels for so few rows. Empty: those tiles are enough.
  std::optional<Tile> fewest_rows;
  uint32_t few_subgroups = 0;  // of experts_few, per multiprocessor
  // Rounds of experts_one_row that are in flight, in its products with and without gates.
  uint32_t gate_rounds = 0, sum_rounds = 0;
  // The first product's workgroups choose the experts themselves if there are at most this many
  // workgroups per multiprocessor. More would run in a second wave, which would choose again.
  uint32_t most_routing_groups = 0;
  // experts_integer: the most waves of workgroups, and the share of a device that they should fill.
  uint32_t most_waves = 0, full_percent = 0;
  // Loading and decoding the weights of a tile takes as long as the products of this many rows.
  uint32_t float_tile_rows = 0, quantized_tile_rows = 0;
};

// attention_direct: subgroups of a workgroup.
struct AttentionDirectTuning {
  uint32_t most_subgroups = 0;  // over short contexts
  // Over longer ones: usually; and if there are few items, or if the cache is quantized.
  uint32_t long_subgroups = 0, more_long_subgroups = 0;
};

struct AttentionRowsTuning {
  // Subgroups of a workgroup: for single tokens over short contexts, with at most
  // `most_quantized_subgroups` if the cache is quantized; for single tokens over longer ones; and
  // for several rows per sequence, or deterministic steps.
  uint32_t fewest_subgroups = 0, most_subgroups = 0, most_quantized_subgroups = 0;
  uint32_t long_subgroups = 0, several_rows_subgroups = 0;
  // Chunks of keys that a lane loads together: from an f16 cache, usually and in a workgroup of
  // many subgroups; and from a quantized cache.
  uint32_t loads = 0, many_subgroups_loads = 0, quantized_loads = 0;
  // Elements of the queries that a lane holds, beside as many of the result.
  uint32_t query_elements = 0;
  uint32_t most_scores = 0;  // that a lane holds; a score belongs to one row and one key
  uint32_t most_run = 0;     // keys that it loads together
  bool loads_ahead = false;  // whether it has registers to load the next ones meanwhile
  uint32_t waves = 0;        // of workgroups per step, if splits stay long enough
};

// A workgroup of attention_lanes.
struct AttentionLanesGroup {
  uint32_t subgroups = 0, keys = 0;  // keys at a time, a multiple of 32
};

struct PaceTuning {
  uint32_t short_context = 0;  // tokens up to which start and end dominate; ends a range of buckets
  uint32_t subgroups = 0;      // that keep the device busy with single tokens
  uint32_t prompt_groups = 0;  // workgroups that do so with prompts
  // The fewest keys per split of single tokens: usually, and for workgroups of up to
  // `few_subgroups`.
  uint32_t split_keys = 0, few_subgroups = 0, few_subgroups_split_keys = 0;
  AttentionDirectTuning direct;
  AttentionRowsTuning rows;
  AttentionLanesGroup lanes, quantized_lanes;  // by the cache's format
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

struct ActivationTuning {
  uint32_t many_rows = 0;  // from which on lanes have twice the work, for fewer workgroups
};

struct SamplingTuning {
  uint32_t few_rows = 0;         // up to which the scan uses more lanes with less work each
  uint32_t resident_groups = 0;  // of the pick, per multiprocessor
  uint32_t most_row_groups = 0;  // most workgroups per row
};

// In a chain, the kernels of a step wait for each other on the GPU (runtime/chain.h).
struct ChainTuning {
  uint32_t most_rows = 0;  // steps with more rows use barriers
  // A dispatch with more workgroups counts them apart from the counter that later kernels poll.
  // That takes one more atomic operation at the end, and the others get in each other's way less.
  uint32_t large_dispatch = 0;
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
  ActivationTuning activation;
  SamplingTuning sampling;
  ChainTuning chain;
};

// The profile of a device: its family's, or general_profile().
TuningProfile tuning_profile(const DeviceCaps& caps);

TuningProfile general_profile(const DeviceCaps& caps);
TuningProfile hopper_profile();

}  // namespace hearth
