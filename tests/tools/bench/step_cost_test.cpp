// A step computes every token up to the attention of the last layer, and after that only those
// whose logits are wanted.
#include "tools/bench/step_cost.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "engine/program/op.h"

namespace hearth::testing {
namespace {

TEST(StepCost, TheLastLayerGoesOnWithTheWantedRows) {
  const auto opened = ModelFile::open(std::filesystem::path(HEARTH_SOURCE_DIR) / "models" /
                                      "default" / "hearth-tiny-Q8_0.gguf");
  ASSERT_TRUE(opened.ok());
  const auto planned = plan_model(**opened);
  ASSERT_TRUE(planned.ok());
  const ModelPlan& plan = *planned;
  const ModelConfig& config = plan.config;
  constexpr uint32_t kRows = 9;
  const double width = config.width, heads = config.q_width(), mlp = config.mlp_width;
  double attention = 0;  // of a step that wants all rows
  for (const uint32_t wanted : {kRows, 2u, 0u}) {
    StepBatch batch;
    batch.add_sequence(0, std::vector<uint32_t>(kRows), std::vector<uint32_t>{0});
    for (uint32_t i = 0; i < wanted; ++i) batch.logit_rows.push_back(kRows - wanted + i);
    PartCosts costs = step_costs(plan, KvFormat::kF16, batch);
    const double layers = config.layers, rows = (layers - 1) * kRows + wanted;
    EXPECT_EQ(costs[step_part::kQkv].operations,
              2 * layers * kRows * width * (heads + 2 * config.kv_width()));
    EXPECT_EQ(costs[step_part::kAttentionOut].operations, 2 * rows * heads * width);
    EXPECT_EQ(costs[step_part::kGateUp].operations, 4 * rows * width * mlp);
    EXPECT_EQ(costs[step_part::kDown].operations, 2 * rows * mlp * width);
    EXPECT_EQ(costs[step_part::kLogits].operations, 2.0 * wanted * width * config.vocabulary);
    if (wanted == kRows) attention = costs[step_part::kAttention].operations;
    EXPECT_EQ(costs[step_part::kAttention].operations * layers,
              attention * (wanted > 0 ? layers : layers - 1));
    // The output weights are only read if any logits are wanted.
    EXPECT_EQ(costs[step_part::kLogits].bytes() > 0, wanted > 0);
  }
  EXPECT_GT(attention, 0);
}

// A step reads the experts that its rows choose, not all of them.
TEST(StepCost, OnlyExpertsThatAreChosenCount) {
  const auto opened = ModelFile::open(std::filesystem::path(HEARTH_SOURCE_DIR) / "tests" /
                                      "models" / "golden" / "qwen3moe");
  ASSERT_TRUE(opened.ok());
  const auto plan = plan_model(**opened);
  ASSERT_TRUE(plan.ok());
  const ModelConfig& config = plan->config;
  const auto experts = [&](uint32_t rows) {
    StepBatch batch;
    for (uint32_t i = 0; i < rows; ++i) {
      batch.logit_rows.push_back(i);
      batch.add_sequence(0, std::vector<uint32_t>(1), std::vector<uint32_t>{i});
    }
    PartCosts costs = step_costs(*plan, KvFormat::kF16, batch);
    EXPECT_EQ(costs[step_part::kGateUp].operations + costs[step_part::kActivation].operations, 0);
    return costs[step_part::kExperts];
  };
  const double weights = 3.0 * config.width * config.mlp_width * config.layers;  // of one expert
  EXPECT_DOUBLE_EQ(experts(1).operations, 2 * weights * config.used_experts);
  const double activations =
      4.0 * config.used_experts * config.layers * (2 * config.width + 3 * config.mlp_width);
  EXPECT_NEAR(experts(1).bytes(), 4 * weights * config.used_experts + activations, 1);
  EXPECT_NEAR(experts(1000).bytes(), 4 * weights * config.experts + 1000 * activations, 1);
}

}  // namespace
}  // namespace hearth::testing
