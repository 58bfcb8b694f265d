// What a file says about experts: hostile numbers are refused in one line, and the memory plan
// counts every expert.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/model/model.h"
#include "engine/weights/gguf_writer.h"
#include "engine/weights/model_file.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

struct ExpertFile {
  uint32_t experts = 4, used = 2, width = 32, mlp_width = 64;
  uint32_t tensor_experts = 4;  // in the tensors
  WeightFormat up = WeightFormat::kQ8_0;
  const char* architecture = "qwen3moe";
};

// A GGUF file of one layer, with zeros as weights.
std::string expert_gguf(const ExpertFile& file) {
  const std::string arch = file.architecture;
  GgufKeys keys;
  keys.add("general.architecture", file.architecture);
  const auto key = [&](const char* name, uint32_t value) { keys.add(arch + "." + name, value); };
  key("block_count", 1);
  key("context_length", 64);
  key("embedding_length", file.width);
  key("feed_forward_length", 96);
  key("attention.head_count", 2);
  key("attention.head_count_kv", 1);
  key("attention.key_length", 16);
  key("expert_count", file.experts);
  key("expert_used_count", file.used);
  key("expert_feed_forward_length", file.mlp_width);
  keys.add(arch + ".attention.layer_norm_rms_epsilon", 1e-5f);
  const auto f32 = [](std::string name, uint64_t rows, uint64_t cols) {
    return GgufTensorPlan{
        .name = std::move(name), .format = WeightFormat::kF32, .rows = rows, .cols = cols};
  };
  const auto experts = [&](std::string name, WeightFormat format, uint64_t rows, uint64_t cols) {
    return GgufTensorPlan{.name = std::move(name),
                          .format = format,
                          .matrices = file.tensor_experts,
                          .rows = file.tensor_experts * rows,
                          .cols = cols};
  };
  const std::string blk = "blk.0.";
  const std::vector<GgufTensorPlan> tensors = {
      f32("token_embd.weight", 8, file.width),
      f32("output_norm.weight", 1, file.width),
      f32(blk + "attn_norm.weight", 1, file.width),
      f32(blk + "attn_q.weight", 32, file.width),
      f32(blk + "attn_k.weight", 16, file.width),
      f32(blk + "attn_v.weight", 16, file.width),
      f32(blk + "attn_q_norm.weight", 1, 16),
      f32(blk + "attn_k_norm.weight", 1, 16),
      f32(blk + "attn_output.weight", file.width, 32),
      f32(blk + "ffn_norm.weight", 1, file.width),
      f32(blk + "ffn_gate_inp.weight", file.tensor_experts, file.width),
      experts(blk + "ffn_gate_exps.weight", WeightFormat::kQ8_0, file.mlp_width, file.width),
      experts(blk + "ffn_up_exps.weight", file.up, file.mlp_width, file.width),
      experts(blk + "ffn_down_exps.weight", WeightFormat::kQ8_0, file.width, file.mlp_width)};
  uint64_t bytes = 0;
  for (const GgufTensorPlan& tensor : tensors) {
    const FormatInfo& info = format_info(tensor.format);
    bytes += (tensor.rows * tensor.cols / info.block_weights * info.block_bytes + 31) / 32 * 32;
  }
  return gguf_header(keys, tensors) + std::string(bytes, '\0');
}

std::string expert_problem(const ExpertFile& file) {
  const std::string bytes = expert_gguf(file);
  const auto model = ModelFile::from_memory(std::as_bytes(std::span(bytes)), "experts.gguf");
  if (!model.ok()) return model.error().message;
  const auto plan = plan_model(**model);
  return plan.ok() ? "" : plan.error().message;
}

TEST(ExpertFiles, HostileNumbersAreRefused) {
  EXPECT_EQ(expert_problem({}), "");
  EXPECT_THAT(expert_problem({.used = 0}), HasSubstr("0 out of 4 experts is not supported"));
  EXPECT_THAT(expert_problem({.used = 5}), HasSubstr("5 out of 4 experts is not supported"));
  EXPECT_THAT(expert_problem({.experts = 0xffffffff}), HasSubstr("out of 4294967295 experts"));
  EXPECT_THAT(expert_problem({.experts = 0xffffffff, .used = 0xffffffff}),
              HasSubstr("is not supported; at most"));
  EXPECT_THAT(expert_problem({.experts = 0, .used = 0}), HasSubstr("expert_count is missing or 0"));
  EXPECT_THAT(expert_problem({.experts = 3}), HasSubstr("ffn_gate_inp.weight is 4 x 32"));
  EXPECT_THAT(expert_problem({.mlp_width = 32, .tensor_experts = 8}), HasSubstr("is 8 x 32"));
  EXPECT_THAT(expert_problem({.up = WeightFormat::kQ4_0}),
              HasSubstr("gates and ups of experts must have the same format"));
  // The same for llama, where experts are optional: without a count they are unknown tensors.
  EXPECT_NE(expert_problem({.experts = 0, .used = 0, .architecture = "llama"}), "");
  EXPECT_THAT(expert_problem({.used = 9, .architecture = "llama"}),
              HasSubstr("9 out of 4 experts"));
}

TEST(ExpertFiles, EveryExpertCountsInTheMemoryPlan) {
  const std::string bytes = expert_gguf({});
  const auto file = ModelFile::from_memory(std::as_bytes(std::span(bytes)), "experts.gguf");
  ASSERT_TRUE(file.ok()) << file.error().message;
  const auto plan = plan_model(**file);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->config.mlp_width, 64u);
  const uint64_t experts = 4 * 3 * 64 * 32;
  EXPECT_GT(plan->parameters, experts);
  EXPECT_GE(plan->weight_bytes, experts * 34 / 32);
  const WeightShape& down = plan->shapes.get({WeightRole::kExpertDown, 0});
  ASSERT_EQ(down.size(), 1u);
  EXPECT_EQ(down.front().rows, 32u) << "of one expert";
}

}  // namespace
}  // namespace hearth::testing
