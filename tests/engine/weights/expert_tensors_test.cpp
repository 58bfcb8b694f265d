// Experts in Hugging Face folders: names, keys, and rows that do not follow each other in the file.
#include "engine/weights/hugging_face/expert_tensors.h"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/weights/hugging_face/config.h"
#include "engine/weights/hugging_face/tensor_names.h"
#include "engine/weights/repack.h"
#include "engine/weights/safetensors.h"
#include "engine/weights/stored_tensor.h"

namespace hearth {
namespace {

using hugging_face::arrange_experts;
using hugging_face::find_family;
using hugging_face::gguf_tensor_name;
using hugging_face::translate_config;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json experts_config(std::string_view model_type, const json& more) {
  json config = {
      {"model_type", model_type}, {"num_hidden_layers", 3},         {"hidden_size", 64},
      {"intermediate_size", 96},  {"num_attention_heads", 8},       {"num_key_value_heads", 2},
      {"vocab_size", 100},        {"max_position_embeddings", 512}, {"rms_norm_eps", 1e-5}};
  config.update(more);
  return config;
}

uint64_t whole(const Metadata& metadata, std::string_view key) {
  const auto value = metadata.unsigned_integer(key);
  return value.ok() && *value ? **value : ~uint64_t{0};
}

TEST(ExpertConfig, KeysOfEachFamily) {
  const auto mixtral = translate_config(
      experts_config("mixtral", {{"num_local_experts", 4}, {"num_experts_per_tok", 2}}));
  ASSERT_TRUE(mixtral.ok()) << mixtral.error().message;
  EXPECT_EQ(**mixtral->metadata.text("general.architecture"), "llama");
  EXPECT_EQ(whole(mixtral->metadata, "llama.expert_count"), 4u);
  EXPECT_EQ(whole(mixtral->metadata, "llama.expert_used_count"), 2u);
  EXPECT_FALSE(mixtral->metadata.has("llama.expert_weights_norm"));

  const auto qwen = translate_config(experts_config("qwen3_moe", {{"num_experts", 6},
                                                                  {"num_experts_per_tok", 3},
                                                                  {"moe_intermediate_size", 32},
                                                                  {"norm_topk_prob", true}}));
  ASSERT_TRUE(qwen.ok()) << qwen.error().message;
  EXPECT_EQ(whole(qwen->metadata, "qwen3moe.expert_count"), 6u);
  EXPECT_EQ(whole(qwen->metadata, "qwen3moe.expert_feed_forward_length"), 32u);
  EXPECT_TRUE(**qwen->metadata.boolean("qwen3moe.expert_weights_norm"));

  const auto gpt = translate_config(experts_config(
      "gpt_oss",
      {{"num_local_experts", 8},
       {"quantization_config", {{"quant_method", "mxfp4"}}},
       {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 32.0}, {"truncate", false}}}}));
  ASSERT_TRUE(gpt.ok()) << gpt.error().message;
  EXPECT_EQ(whole(gpt->metadata, "gpt-oss.expert_used_count"), 4u);
  EXPECT_EQ(whole(gpt->metadata, "gpt-oss.attention.sliding_window"), 128u);
  EXPECT_THAT(**gpt->metadata.booleans("gpt-oss.attention.sliding_window_pattern"),
              ElementsAre(true, false, true));
  EXPECT_FALSE(**gpt->metadata.boolean("gpt-oss.rope.scaling.yarn_truncate"));
}

TEST(ExpertConfig, WhatIsNotSupportedIsRefused) {
  const auto problem = [](std::string_view type, const json& more) {
    const auto config = translate_config(experts_config(type, more));
    return config.ok() ? "" : config.error().message;
  };
  EXPECT_THAT(problem("mixtral", {{"num_local_experts", 0}}),
              HasSubstr("'num_local_experts' is 0"));
  EXPECT_THAT(problem("qwen3_moe", {{"num_experts_per_tok", "x"}}),
              HasSubstr("'num_experts_per_tok'"));
  EXPECT_THAT(problem("qwen3_moe", {{"mlp_only_layers", {1}}}),
              HasSubstr("layers without experts"));
  EXPECT_THAT(problem("qwen3_moe", {{"decoder_sparse_step", 2}}),
              HasSubstr("layers without experts"));
  EXPECT_THAT(problem("gpt_oss", {{"swiglu_limit", 5.0}}), HasSubstr("'swiglu_limit'"));
  EXPECT_THAT(problem("gpt_oss", {{"quantization_config", {{"quant_method", "awq"}}}}),
              HasSubstr("quantization_config"));
}

TEST(ExpertNames, OfEachFamily) {
  const auto& mixtral = *find_family("mixtral");
  const auto& qwen = *find_family("qwen3_moe");
  const auto& gpt = *find_family("gpt_oss");
  EXPECT_EQ(gguf_tensor_name("model.layers.2.block_sparse_moe.gate.weight", mixtral),
            "blk.2.ffn_gate_inp.weight");
  EXPECT_EQ(gguf_tensor_name("model.layers.2.block_sparse_moe.experts.7.w1.weight", mixtral),
            "blk.2.ffn_gate.7.weight");
  EXPECT_EQ(gguf_tensor_name("model.layers.2.block_sparse_moe.experts.7.w2.weight", mixtral),
            "blk.2.ffn_down.7.weight");
  EXPECT_EQ(gguf_tensor_name("model.layers.2.block_sparse_moe.experts.7.w3.weight", mixtral),
            "blk.2.ffn_up.7.weight");
  EXPECT_EQ(gguf_tensor_name("model.layers.0.mlp.gate.weight", qwen), "blk.0.ffn_gate_inp.weight");
  EXPECT_EQ(gguf_tensor_name("model.layers.0.mlp.experts.12.up_proj.weight", qwen),
            "blk.0.ffn_up.12.weight");
  EXPECT_EQ(gguf_tensor_name("model.layers.0.mlp.experts.x.up_proj.weight", qwen),
            "model.layers.0.mlp.experts.x.up_proj.weight");
  EXPECT_EQ(gguf_tensor_name("model.layers.1.self_attn.sinks", gpt), "blk.1.attn_sinks.weight");
  EXPECT_EQ(gguf_tensor_name("model.layers.1.mlp.router.bias", gpt), "blk.1.ffn_gate_inp.bias");
  EXPECT_EQ(gguf_tensor_name("model.layers.1.post_attention_layernorm.weight", gpt),
            "blk.1.post_attention_norm.weight");
  EXPECT_EQ(gguf_tensor_name("model.layers.1.mlp.experts.gate_up_proj_blocks", gpt),
            "blk.1.ffn_gate_up_exps.mxfp4_blocks");
}

// [experts, inputs, outputs] with outputs that take turns: gate, up, gate, up.
TEST(ExpertTensors, InterleavedAndTransposedFloats) {
  constexpr uint32_t kExperts = 2, kInputs = 3, kOutputs = 4;
  std::vector<float> stored(kExperts * kInputs * kOutputs);
  for (size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<float>(i);
  const std::vector<float> biases = {0, 1, 2, 3, 10, 11, 12, 13};
  std::vector<ModelTensor> tensors = {
      {.name = "blk.0.ffn_gate_up_exps.weight",
       .format = WeightFormat::kF32,
       .matrices = kExperts,
       .rows = kExperts * kInputs,
       .cols = kOutputs,
       .bytes = std::as_bytes(std::span(stored))},
      {.name = "blk.0.ffn_gate_up_exps.bias",
       .format = WeightFormat::kF32,
       .rows = kExperts,
       .cols = kOutputs,
       .bytes = std::as_bytes(std::span(biases))},
      {.name = "blk.0.ffn_down_exps.weight",
       .format = WeightFormat::kF32,
       .matrices = kExperts,
       .rows = kExperts * kInputs,
       .cols = kOutputs,
       .bytes = std::as_bytes(std::span(stored))},
      {.name = "blk.0.ffn_down_exps.bias", .format = WeightFormat::kF32, .rows = 2, .cols = 3}};
  std::deque<TensorStrides> strides;
  ASSERT_TRUE(arrange_experts(tensors, strides).ok());
  const auto rows = [&](std::string_view name, uint64_t first, uint64_t count) {
    const auto tensor = std::ranges::find(tensors, name, &ModelTensor::name);
    EXPECT_NE(tensor, tensors.end()) << name;
    std::vector<float> values(count * tensor->cols);
    read_tensor_rows(*tensor, first, count, std::as_writable_bytes(std::span(values)));
    return values;
  };
  ASSERT_EQ(tensors.size(), 6u);
  EXPECT_THAT(rows("blk.0.ffn_gate_exps.weight", 0, 2), ElementsAre(0, 4, 8, 2, 6, 10));
  EXPECT_THAT(rows("blk.0.ffn_up_exps.weight", 1, 2), ElementsAre(3, 7, 11, 13, 17, 21));
  EXPECT_THAT(rows("blk.0.ffn_gate_exps.bias", 0, 2), ElementsAre(0, 2, 10, 12));
  EXPECT_THAT(rows("blk.0.ffn_up_exps.bias", 1, 1), ElementsAre(11, 13));
  EXPECT_THAT(rows("blk.0.ffn_down_exps.weight", 3, 2), ElementsAre(3, 7, 11, 12, 16, 20));
}

// Blocks have neighbours in one byte; GGUF has weights 16 apart. Gates and ups take turns by rows.
TEST(ExpertTensors, Mxfp4InBlocksAndScales) {
  constexpr uint32_t kExperts = 2, kRows = 4, kBlocks = 2;
  std::vector<std::byte> blocks(kExperts * kRows * kBlocks * 16),
      scales(kExperts * kRows * kBlocks);
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::byte>(i * 37 + 11);
  for (size_t i = 0; i < scales.size(); ++i) scales[i] = static_cast<std::byte>(120 + i % 9);
  std::vector<ModelTensor> tensors = {{.name = "blk.0.ffn_gate_up_exps.mxfp4_blocks",
                                       .format = WeightFormat::kMxfp4,
                                       .matrices = kExperts * kRows,
                                       .rows = kExperts * kRows * kBlocks,
                                       .cols = 16,
                                       .bytes = blocks},
                                      {.name = "blk.0.ffn_gate_up_exps.mxfp4_exponents",
                                       .format = WeightFormat::kMxfp4,
                                       .matrices = kExperts,
                                       .rows = kExperts * kRows,
                                       .cols = kBlocks,
                                       .bytes = scales}};
  std::deque<TensorStrides> strides;
  ASSERT_TRUE(arrange_experts(tensors, strides).ok());
  ASSERT_EQ(tensors.size(), 2u);
  constexpr float kValueCount[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (const ModelTensor& tensor : tensors) {
    const uint64_t turn = tensor.name == "blk.0.ffn_up_exps.weight" ? 1 : 0;
    EXPECT_EQ(tensor.rows, kExperts * kRows / 2);
    EXPECT_EQ(tensor.cols, kBlocks * 32u);
    std::vector<std::byte> file(tensor.plain_bytes());
    read_tensor_rows(tensor, 0, tensor.rows, file);
    const uint64_t count = tensor.rows * kBlocks;
    std::vector<std::byte> device(device_layout(tensor.format, count).total_bytes);
    repack_matrix(tensor.format, file, device);
    for (uint64_t row = 0; row < tensor.rows; ++row) {
      std::vector<float> values(tensor.cols);
      dequantize_row(tensor.format, device.data(), {tensor.rows, tensor.cols}, row, values.data());
      const uint64_t stored = row / 2 * kRows + row % 2 * 2 + turn;
      for (uint64_t c = 0; c < tensor.cols; ++c) {
        const uint64_t block = stored * kBlocks + c / 32;
        const auto byte = std::to_integer<uint32_t>(blocks[block * 16 + c % 32 / 2]);
        const uint32_t code = c % 2 == 0 ? byte & 15 : byte >> 4;
        const float wanted = std::ldexp(code < 8 ? kValueCount[code] : -kValueCount[code - 8],
                                        std::to_integer<int>(scales[block]) - 127);
        ASSERT_EQ(values[c], wanted) << tensor.name << " row " << row << " column " << c;
      }
    }
  }
}

TEST(ExpertTensors, HalvesThatDoNotFitAreRefused) {
  const std::vector<std::byte> bytes(64);
  const ModelTensor blocks{.name = "blk.0.ffn_down_exps.mxfp4_blocks",
                           .format = WeightFormat::kMxfp4,
                           .rows = 4,
                           .cols = 16,
                           .bytes = bytes};
  std::deque<TensorStrides> strides;
  std::vector<ModelTensor> alone = {blocks};
  EXPECT_FALSE(arrange_experts(alone, strides).ok());
  ModelTensor scales = blocks;
  scales.name = "blk.0.ffn_down_exps.mxfp4_exponents";
  scales.rows = 3;
  scales.cols = 1;
  std::vector<ModelTensor> misfit = {blocks, scales};
  EXPECT_FALSE(arrange_experts(misfit, strides).ok());
  std::vector<ModelTensor> odd = {{.name = "blk.0.ffn_gate_up_exps.weight",
                                   .format = WeightFormat::kF32,
                                   .rows = 1,
                                   .cols = 3,
                                   .bytes = std::span(bytes).first(12)}};
  EXPECT_FALSE(arrange_experts(odd, strides).ok());
}

}  // namespace
}  // namespace hearth
