// Which rows and columns of a model's weights a rank gets, if ranks divide every layer.
#include "engine/model/weight_shard.h"

#include <map>

#include <gmock/gmock.h>

#include "engine/model/kv_cache.h"
#include "engine/model/model.h"
#include "tests/support/made_model.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<MadeModel> model_to_shard(const MadeModelInfo& info) {
  auto file = MadeModel::header(info);
  EXPECT_TRUE(file.ok()) << file.error().message;
  return std::move(*file);
}

ModelPlan shard_plan(const ModelFile& file, uint32_t index, uint32_t count) {
  auto plan = plan_model(file, {}, {.index = index, .count = count});
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  return plan.ok() ? *plan : ModelPlan();
}

std::string shard_error(const ModelFile& file, uint32_t count) {
  const auto plan = plan_model(file, {}, {.index = 0, .count = count});
  return plan.ok() ? "" : plan.error().message;
}

TEST(WeightShard, RangesAreEvenAndCoverEverything) {
  for (const uint64_t unit : {1, 16, 32})
    for (const uint32_t ranks : {1u, 2u, 3u, 7u}) {
      uint64_t end = 0;
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        const ShardRange range = shard_range({.index = rank, .count = ranks}, 1000, unit);
        EXPECT_EQ(range.first, end);
        EXPECT_EQ(range.first % unit, 0u);
        EXPECT_NEAR(static_cast<double>(range.size), 1000.0 / ranks,
                    2.0 * static_cast<double>(unit));
        end += range.size;
      }
      EXPECT_EQ(end, 1000u);
    }
}

// Every element of a tensor is on as many ranks as it should be.
TEST(WeightShard, EveryElementIsOnOneRankOrOnAll) {
  for (const std::string architecture :
       {"llama", "qwen2", "qwen3", "phi3", "gemma2", "gemma3", "qwen3moe", "gpt-oss"})
    for (const uint32_t ranks : {2u, 3u}) {
      SCOPED_TRACE(architecture + " on " + std::to_string(ranks) + " ranks");
      MadeModelInfo info = small_model(architecture);
      info.heads = 12;
      info.kv_heads = 6;
      info.optional_weights = true;
      const auto file = model_to_shard(info);
      std::map<std::string, std::vector<uint32_t>> found;
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        const ModelPlan plan = shard_plan(*file, rank, ranks);
        for (const WeightSpec& spec : plan.table.specs())
          for (const SegmentPlan& segment : plan_segments(spec, *file))
            for (const auto& [tensor, first, rows] : segment.tensors) {
              std::vector<uint32_t>& count = found[tensor->name];
              count.resize(tensor->rows * tensor->cols);
              // The rows of a vector are its elements.
              const bool vector = spec.is_vector && spec.experts == 0;
              const bool bias = spec.is_vector && spec.experts > 0;
              const uint64_t matrices = spec.experts > 0 && !bias ? spec.experts : 1;
              for (uint64_t matrix = 0; matrix < matrices; ++matrix)
                for (uint64_t r = 0; r < rows / matrices; ++r) {
                  const uint64_t row = matrix * (tensor->rows / matrices) + first + r;
                  for (uint64_t c = 0; c < (vector ? 1 : segment.cols); ++c)
                    ++count[vector ? row : row * tensor->cols + segment.first_col + c];
                }
            }
      }
      for (const ModelTensor& tensor : file->tensors()) {
        const bool on_all = tensor.name.find("norm") != std::string::npos ||
                            tensor.name.find("ffn_gate_inp") != std::string::npos;
        for (const uint32_t count : found[tensor.name])
          ASSERT_EQ(count, on_all ? ranks : 1u) << tensor.name;
        EXPECT_EQ(found[tensor.name].size(), tensor.rows * tensor.cols) << tensor.name;
      }
    }
}

// The goal is 3 %: what all ranks have are norms and routers.
TEST(WeightShard, WeightsAndKvOfARankAreItsPart) {
  MadeModelInfo info;
  info.layers = 4;
  info.width = 4096;
  info.heads = 32;
  info.kv_heads = 8;
  info.head_size = 128;
  info.mlp_width = 14336;  // 56 blocks
  info.vocabulary = 32000;
  info.optional_weights = true;
  info.format = [](const std::string&) { return WeightFormat::kQ4K; };
  const auto file = model_to_shard(info);
  const ModelPlan whole = shard_plan(*file, 0, 1);
  for (const uint32_t ranks : {2u, 4u})
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const ModelPlan plan = shard_plan(*file, rank, ranks);
      EXPECT_NEAR(
          static_cast<double>(plan.weight_bytes) * ranks / static_cast<double>(whole.weight_bytes),
          1, 0.03);
      EXPECT_EQ(kv_bytes_per_block(plan.config, KvFormat::kF16) * ranks,
                kv_bytes_per_block(whole.config, KvFormat::kF16));
      EXPECT_EQ(plan.parameters, whole.parameters);
    }
}

// Fewer KV heads than ranks: several ranks have the same one, and different q heads.
TEST(WeightShard, RanksMayShareAKvHead) {
  MadeModelInfo info;
  info.heads = 12;
  info.kv_heads = 2;
  const auto file = model_to_shard(info);
  uint32_t heads = 0;
  for (uint32_t rank = 0; rank < 4; ++rank) {
    const ModelPlan plan = shard_plan(*file, rank, 4);
    EXPECT_EQ(plan.config.kv_heads, 1u);
    EXPECT_EQ(plan.config.heads, 3u);
    for (const WeightSpec& spec : plan.table.specs()) {
      if (spec.role == WeightRole::kAttentionOut) {
        EXPECT_EQ(spec.first_col, heads * info.head_size);
      }
      if (spec.role != WeightRole::kQkv) continue;
      ASSERT_EQ(spec.parts.size(), 3u);
      EXPECT_EQ(spec.parts[0].first_row, heads * info.head_size);
      EXPECT_EQ(spec.parts[1].first_row, rank / 2 * info.head_size);
      EXPECT_EQ(spec.parts[2].first_row, rank / 2 * info.head_size);
    }
    heads += plan.config.heads;
  }
  EXPECT_EQ(heads, 12u);
}

TEST(WeightShard, SaysWhatCannotBeDivided) {
  MadeModelInfo info;
  EXPECT_EQ(shard_error(*model_to_shard(info), 3),
            "llama: 2 KV heads cannot be divided over 3 ranks");
  EXPECT_EQ(shard_error(*model_to_shard(info), 8),
            "llama: 4 heads over 2 KV heads cannot be divided over 8 ranks");
  info.mlp_width = 256;
  info.width = 256;
  info.heads = 8;
  info.kv_heads = 4;
  info.head_size = 128;
  info.format = [](const std::string&) { return WeightFormat::kQ4K; };
  EXPECT_EQ(shard_error(*model_to_shard(info), 2),
            "llama: an MLP of 256 columns in blocks of 256 cannot be divided over 2 ranks");
  info.mlp_width = 512;
  info.head_size = 32;  // 4 KV heads with 2 heads each: 64 columns
  EXPECT_THAT(shard_error(*model_to_shard(info), 2),
              HasSubstr("4 KV heads in groups of 4, because of blocks of 256 weights, cannot"));
  info.format = [](const std::string&) { return WeightFormat::kQ8_0; };
  EXPECT_EQ(shard_error(*model_to_shard(info), 2), "");
}

}  // namespace
}  // namespace hearth::testing
