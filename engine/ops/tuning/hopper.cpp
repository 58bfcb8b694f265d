#include "engine/ops/tuning/profile.h"
#include "engine/ops/tuning/tile.h"

// All numbers were measured on an H200.
namespace hearth {
namespace {

constexpr Tile direct(uint32_t rows, uint32_t outputs, uint32_t part_outputs, uint32_t resident,
                      uint32_t percent, uint32_t buffers) {
  return {.rows = rows,
          .outputs = outputs,
          .inputs = 128,
          .part_rows = rows,
          .part_outputs = part_outputs,
          .resident = resident,
          .percent = percent,
          .kernel = TileKernel::kDirect,
          .buffers = buffers};
}

constexpr Tile wide(uint32_t rows, uint32_t outputs, uint32_t part_rows, uint32_t part_outputs,
                    uint32_t percent, uint32_t reread_percent = 3) {
  return {.rows = rows,
          .outputs = outputs,
          .inputs = 64,
          .part_rows = part_rows,
          .part_outputs = part_outputs,
          .percent = percent,
          .kernel = TileKernel::kWide,
          .reread_percent = reread_percent};
}

// Found by timing about 5,000 tiles (matmul_sweep): docs/lab/kernels_h200.md.
constexpr Tile kFloatTiles[] = {
    {16, 64, 64, 16, 16, 4, 1, 2},
    {32, 128, 64, 32, 32, 2, 1, 2},
    {32, 64, 64, 32, 16, 3, 1, 2, 138},
    {48, 96, 64, 48, 32, 2, 1, 2, 191},
    {48, 96, 64, 48, 32, 2, 1, 0, 206},
    direct(48, 128, 32, 2, 183, 1),
    {48, 224, 64, 48, 32, 1, 1, 2},
    {48, 256, 64, 48, 32, 1, 1, 2},
    {64, 96, 64, 32, 32, 2, 1, 2, 186},
    {64, 96, 64, 32, 32, 2, 1, 0, 206},
    direct(64, 128, 32, 2, 183, 1),
    {64, 224, 64, 32, 56, 1, 1, 2},
    {64, 256, 64, 32, 64, 1, 1, 2},
    {80, 192, 64, 80, 32, 1, 1, 0, 104},
    {80, 224, 64, 80, 32, 1, 1, 2},
    {80, 256, 64, 80, 32, 1, 1, 2},
    {96, 128, 64, 48, 32, 1, 1, 2},
    {96, 192, 64, 96, 32, 1, 1, 0},
    {96, 224, 64, 48, 56, 1, 2, 2},
    {112, 224, 64, 112, 32, 1, 1, 8, 118},
    {112, 192, 64, 112, 32, 1, 1, 0, 118},
    {128, 128, 64, 32, 64, 1, 1, 8, 113},
    {128, 160, 64, 32, 80, 1, 1, 2, 114},
    {128, 192, 64, 64, 48, 1, 2, 2, 101},
    wide(128, 192, 64, 48, 89, 12),
    wide(128, 256, 64, 64, 90),
    {144, 128, 64, 48, 32, 1, 1, 8, 125},
    {160, 128, 64, 80, 32, 1, 1, 8, 113},
    wide(160, 128, 32, 64, 100, 12),
    wide(160, 192, 80, 48, 90, 12),
    {192, 128, 64, 48, 64, 1, 2, 2},
    wide(192, 128, 48, 64, 98, 12),
    wide(192, 192, 48, 96, 88, 12),
    wide(256, 112, 32, 112, 107),
    wide(256, 128, 64, 64, 94),
};
// Decoding needs registers, and there are fewer bytes to wait for. Up to 96 rows are mostly faster
// with weights straight into fragments.
constexpr Tile kQuantizedTiles[] = {
    {16, 64, 64, 16, 16, 4, 1, 2},         {32, 128, 64, 32, 32, 2, 2, 0},
    {32, 64, 64, 32, 16, 3, 1, 2, 138},    direct(32, 128, 32, 2, 70, 1),
    {48, 224, 64, 48, 32, 1, 2, 2},        {48, 256, 64, 48, 32, 1, 2, 2},
    direct(48, 128, 32, 2, 130, 1),        {64, 96, 64, 32, 32, 2, 1, 2, 182},
    {64, 96, 64, 32, 32, 2, 1, 0, 204},    {64, 128, 64, 32, 32, 1, 1, 2, 122},
    {64, 224, 64, 32, 56, 1, 1, 2},        {64, 256, 64, 32, 32, 1, 1, 2},
    direct(64, 128, 32, 2, 155, 1),        direct(64, 224, 32, 1, 87, 2),
    direct(96, 256, 32, 1, 80, 1),         {96, 224, 64, 48, 56, 1, 1, 2},
    {96, 192, 64, 48, 32, 1, 1, 2},        {96, 128, 64, 48, 32, 1, 1, 2},
    {112, 224, 64, 112, 32, 1, 1, 2, 138}, {112, 192, 64, 112, 16, 1, 1, 2, 143},
    {112, 128, 64, 112, 16, 1, 1, 2, 158}, {128, 128, 64, 64, 32, 1, 2, 2, 126},
    {128, 160, 64, 32, 80, 1, 1, 2, 133},  {128, 192, 64, 64, 32, 1, 1, 2, 112},
    wide(128, 192, 32, 96, 109, 12),       wide(128, 224, 32, 112, 126, 12),
    {144, 128, 64, 48, 32, 1, 1, 2, 131},  {160, 128, 64, 80, 32, 1, 1, 2, 111},
    {192, 128, 64, 48, 64, 1, 2, 2},       wide(256, 128, 64, 64, 98),
};
}  // namespace

TuningProfile hopper_profile() {
  return {
      .name = "hopper",
      .tiles = {.floats = kFloatTiles,
                .quantized = kQuantizedTiles,
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
      .matvec = {.float_outputs = 2,
                 .quantized_outputs = 2,
                 .more_float_outputs = 4,
                 .more_quantized_outputs = 4,
                 .few_rows = 2,
                 .large_outputs = 8192,
                 .small_loads = 4,
                 .one_row_lanes = 256,
                 .lanes = 128},
      // In a chain it is best to fill a multiprocessor with one workgroup that stays for all
      // rounds, with eight loads in flight per lane; then there are few workgroups to wait for, and
      // all finish at about the same time. If that takes too many rounds, smaller workgroups follow
      // each other.
      .team = {.loads = 8,
               .lanes = 256,
               .chained_lanes = 1024,
               .resident_lanes = 1024,
               .most_rounds = 14,
               .small_rounds = 8,
               .reread_outputs = 1024,
               .reread_bytes = 24 << 20},
      .integer = {.most_lanes = 512,
                  .group_lanes = 256,
                  .resident_groups = 2,
                  .most_rounds = 16,
                  .few_rows = 2,
                  .few_rows_pieces = 4,
                  .more_rows_pieces = 2,
                  .wide_q4_0_outputs = 16},
      // With quantized weights, many subgroups let some decode while others wait. Floats only wait
      // for loads, so a subgroup should have many in flight; a second column leaves no registers
      // for that, and tiles are faster.
      .few_rows = {.floats = FewRowsTeam{16, 2},
                   .quantized = FewRowsTeam{32, 1},
                   .quantized_two_columns = FewRowsTeam{16, 2}},
      // docs/lab/tuning_one_row.md. Rows per tile such that qwen3-30b-a3b in Q4_K gets the tiles
      // that were fast: 32 rows at 256 rows per step.
      .experts = {.fewest_rows = direct(16, 128, 32, 4, 90, 1),
                  .few_subgroups = 16,
                  .gate_rounds = 2,
                  .sum_rounds = 1,
                  .most_routing_groups = 4,
                  .most_waves = 4,
                  .full_percent = 90,
                  .float_tile_rows = 16,
                  .quantized_tile_rows = 24},
      // docs/lab/tuning_attention.md. Short steps of one token are slowed down by the large code of
      // attention_direct for heads of 128, which gains nothing over few keys. Tokens/s with
      // attention_direct and attention_rows: 16 layers of 8b Q4_K_M 979 and 1,008 from an empty
      // context, 780 and 758 after 16,000 tokens; 1b, with heads of 64, 1,276 and 1,243 from an
      // empty context. Steps with several tokens per sequence, such as guesses, are there, too.
      // With Q8_0 and long contexts, 64 x 2048 tokens take attention_direct 164 us with two
      // subgroups per item, and 121 with four. In attention_lanes, two small workgroups per
      // multiprocessor wait at different times, but each has to convert a Q8_0 cache to halves.
      .attention = {.short_context = 767,
                    .subgroups = 1024,
                    .prompt_groups = 512,
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
                             .query_elements = 64,
                             .most_scores = 32,
                             .most_run = 8,
                             .loads_ahead = true,
                             .waves = 2},
                    .lanes = {.subgroups = 4, .keys = 32},
                    .quantized_lanes = {.subgroups = 8, .keys = 64},
                    .short_direct_head = 64,
                    .longer_context = 3071,
                    .one_token_rows = 64,
                    .quantized_one_token_rows = 16,
                    .longer_one_token_rows = 36},
      // 64 rows of 4096: 2.8 us with 512 lanes, 3.3 with 1024.
      .norm = {.one_row_lanes = 1024, .lanes = 512},
      .activation = {.many_rows = 64},
      .sampling = {.few_rows = 16, .resident_groups = 2, .most_row_groups = 8},
      // llama-8b: 9 % faster at 1 row, 3 % at 64, 1 % at 192, 0.4 % at 256, but 2 % slower at
      // 2,048, where kernels are long and waiting workgroups take up room.
      .chain = {.most_rows = 256, .large_dispatch = 256},
  };
}

}  // namespace hearth
