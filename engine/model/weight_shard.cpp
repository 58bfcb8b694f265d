#include "engine/model/weight_shard.h"

#include <algorithm>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "engine/ops/matmul.h"

namespace hearth {
namespace {

// Tokens are divided in multiples of this, which suits the kernels.
constexpr uint64_t kTokenUnit = 16;

// What a rank has of the things that are divided.
struct Shares {
  ShardRange heads, kv_heads, mlp, tokens;
};

// The smallest number of columns at which all weights of a role can be cut.
uint64_t column_unit(const ModelFile& file, const WeightTable& table,
                     std::initializer_list<WeightRole> roles) {
  uint64_t unit = 1;
  for (const WeightSpec& spec : table.specs()) {
    if (std::ranges::find(roles, spec.role) == roles.end()) continue;
    for (const WeightPart& part : spec.parts)
      if (const ModelTensor* tensor = file.find(part.tensor)) {
        const FormatInfo& format = format_info(tensor->format);
        unit = std::lcm(unit, uint64_t{format.is_float() ? kFloatInputUnit : format.block_weights});
      }
  }
  return unit;
}

Status check_units(const ModelFile& file, const TensorShard& shard, uint64_t units,
                   const std::string& what) {
  if (units >= shard.count) return {};
  return Error{ErrorKind::kUnsupported, fmt::format("{}: {} cannot be divided over {} ranks",
                                                    file.name(), what, shard.count)};
}

// How many heads of `columns` columns each must stay together, so that blocks are not cut.
uint64_t heads_per_unit(uint64_t columns, uint64_t block) {
  return std::lcm(columns, block) / columns;
}

// The q heads of one KV head, divided over the ranks that have it.
Result<ShardRange> divide_group(const ModelFile& file, const TensorShard& shard,
                                const ModelConfig& config, uint64_t block) {
  const uint32_t sharing = shard.count / config.kv_heads;  // ranks with the same KV head
  const uint64_t group = config.heads / config.kv_heads;
  const uint64_t unit = heads_per_unit(config.head_size, block);
  HEARTH_TRY(check_units(file, shard, config.kv_heads * (group / unit),
                         fmt::format("{} heads over {} KV head{}", config.heads, config.kv_heads,
                                     config.kv_heads == 1 ? "" : "s")));
  const ShardRange range =
      shard_range({.index = shard.index % sharing, .count = sharing}, group, unit);
  return ShardRange{.first = shard.index / sharing * group + range.first, .size = range.size};
}

Status divide_heads(const ModelFile& file, const TensorShard& shard, const ModelConfig& config,
                    uint64_t block, Shares& shares) {
  if (config.kv_heads < shard.count && shard.count % config.kv_heads == 0) {
    HEARTH_ASSIGN(shares.heads, divide_group(file, shard, config, block));
    shares.kv_heads = {.first = shard.index / (shard.count / config.kv_heads), .size = 1};
    return {};
  }
  const uint64_t group = config.heads / config.kv_heads;
  const uint64_t unit = heads_per_unit(group * config.head_size, block);
  HEARTH_TRY(check_units(
      file, shard, config.kv_heads / unit,
      unit == 1 ? fmt::format("{} KV heads", config.kv_heads)
                : fmt::format("{} KV heads in groups of {}, because of blocks of {} weights,",
                              config.kv_heads, unit, block)));
  shares.kv_heads = shard_range(shard, config.kv_heads, unit);
  shares.heads = {.first = shares.kv_heads.first * group, .size = shares.kv_heads.size * group};
  return {};
}

Result<Shares> divide(const ModelFile& file, const TensorShard& shard, const ModelConfig& config,
                      const WeightTable& table) {
  Shares shares;
  HEARTH_TRY(divide_heads(file, shard, config,
                          column_unit(file, table, {WeightRole::kAttentionOut}), shares));
  const uint64_t mlp_unit = column_unit(file, table, {WeightRole::kDown, WeightRole::kExpertDown});
  HEARTH_TRY(
      check_units(file, shard, config.mlp_width / mlp_unit,
                  fmt::format("an MLP of {} columns in blocks of {}", config.mlp_width, mlp_unit)));
  HEARTH_TRY(check_units(file, shard, config.vocabulary / kTokenUnit,
                         fmt::format("a vocabulary of {}", config.vocabulary)));
  shares.mlp = shard_range(shard, config.mlp_width, mlp_unit);
  shares.tokens = shard_range(shard, config.vocabulary, kTokenUnit);
  return shares;
}

// Rows of a weight that belong together, such as those of q, and which of them the rank has.
struct Section {
  uint64_t size = 0;
  ShardRange kept;
};

Section heads_section(uint64_t heads, const ShardRange& kept, uint64_t head_size) {
  return {.size = heads * head_size,
          .kept = {.first = kept.first * head_size, .size = kept.size * head_size}};
}

// Replaces the parts by their rows that the sections keep. A tensor may hold several sections, as
// phi3's do, or one each.
void keep_rows(WeightSpec& spec, std::span<const Section> sections) {
  std::vector<WeightPart> kept;
  uint64_t section_begin = 0;
  for (const Section& section : sections) {
    const uint64_t begin = section_begin + section.kept.first;
    uint64_t part_begin = 0;
    for (const WeightPart& part : spec.parts) {
      if (begin >= part_begin && begin < part_begin + part.rows)
        kept.push_back(
            {.tensor = part.tensor, .rows = section.kept.size, .first_row = begin - part_begin});
      part_begin += part.rows;
    }
    section_begin += section.size;
  }
  spec.parts = std::move(kept);
}

void keep_columns(WeightSpec& spec, const ShardRange& kept) {
  spec.first_col = kept.first;
  spec.cols = kept.size;
}

// The same rows of every expert's matrices; the parts count the rows of all.
void keep_expert_rows(WeightSpec& spec, const ModelConfig& config, const ShardRange& kept) {
  const bool one_each = spec.has_part_per_expert();
  for (WeightPart& part : spec.parts)
    part = {.tensor = part.tensor,
            .rows = kept.size * (one_each ? 1 : config.experts),
            .first_row = kept.first};
}

void cut(WeightSpec& spec, const ModelConfig& config, const Shares& shares) {
  const uint64_t size = config.head_size;
  const Section attention[] = {heads_section(config.heads, shares.heads, size),
                               heads_section(config.kv_heads, shares.kv_heads, size),
                               heads_section(config.kv_heads, shares.kv_heads, size)};
  const Section mlp[] = {{config.mlp_width, shares.mlp}, {config.mlp_width, shares.mlp}};
  const Section tokens[] = {{config.vocabulary, shares.tokens}};
  const Section sinks[] = {{config.heads, shares.heads}};
  switch (spec.role) {
    case WeightRole::kEmbedding:
    case WeightRole::kOutput:
      return keep_rows(spec, tokens);
    case WeightRole::kQkv:
    case WeightRole::kQkvBias:
      return keep_rows(spec, attention);
    case WeightRole::kAttentionOut:
      return keep_columns(spec,
                          {.first = shares.heads.first * size, .size = shares.heads.size * size});
    case WeightRole::kSinks:
      return keep_rows(spec, sinks);
    case WeightRole::kGateUp:
      return keep_rows(spec, mlp);
    case WeightRole::kDown:
    case WeightRole::kExpertDown:
    case WeightRole::kExpertGateUpBias:
      return keep_columns(spec, shares.mlp);
    case WeightRole::kExpertGateUp:
      return keep_expert_rows(spec, config, shares.mlp);
    default:
      return;
  }
}

}  // namespace

Status shard_weights(const ModelFile& file, const TensorShard& shard, ModelConfig& config,
                     WeightTable& table) {
  config.shard = shard;
  config.held_tokens = config.vocabulary;
  if (!shard.is_divided()) return {};
  HEARTH_ASSIGN(const Shares shares, divide(file, shard, config, table));
  if (!shard.is_first())
    table.keep([](const WeightSpec& spec) {
      return spec.role != WeightRole::kAttentionOutBias && spec.role != WeightRole::kExpertDownBias;
    });
  table.change([&](WeightSpec& spec) { cut(spec, config, shares); });
  config.heads = static_cast<uint32_t>(shares.heads.size);
  config.kv_heads = static_cast<uint32_t>(shares.kv_heads.size);
  config.mlp_width = static_cast<uint32_t>(shares.mlp.size);
  config.first_token = static_cast<uint32_t>(shares.tokens.first);
  config.held_tokens = static_cast<uint32_t>(shares.tokens.size);
  return {};
}

}  // namespace hearth
