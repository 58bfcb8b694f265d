#include <cmath>
#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/weights/hugging_face/config.h"
#include "engine/weights/hugging_face/tensor_names.h"
#include "engine/weights/hugging_face/weight_index.h"
#include "tests/engine/weights/model_files.h"

namespace hearth {
namespace {

using hugging_face::find_family;
using hugging_face::gguf_tensor_name;
using hugging_face::translate_config;
using nlohmann::json;
using test::problem_of;
using test::safetensors;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json config(std::string_view model_type, const json& more = json::object()) {
  json config = {
      {"model_type", model_type}, {"num_hidden_layers", 4},         {"hidden_size", 64},
      {"intermediate_size", 96},  {"num_attention_heads", 8},       {"num_key_value_heads", 2},
      {"vocab_size", 100},        {"max_position_embeddings", 512}, {"rms_norm_eps", 1e-5}};
  config.update(more);
  return config;
}

Metadata translated(const json& config) {
  auto result = translate_config(config);
  EXPECT_TRUE(result.ok()) << result.error().message;
  return result.ok() ? std::move(result->metadata) : Metadata();
}

std::string config_problem(const json& config) {
  const auto result = translate_config(config);
  return result.ok() ? "" : result.error().message;
}

double number(const Metadata& metadata, std::string_view key) {
  const auto value = metadata.number(key);
  return value.ok() && *value ? **value : NAN;
}

TEST(HuggingFaceConfig, Llama) {
  const Metadata m = translated(config("llama", {{"rope_theta", 500000.0}}));
  EXPECT_EQ(**m.text("general.architecture"), "llama");
  EXPECT_EQ(number(m, "llama.block_count"), 4);
  EXPECT_EQ(number(m, "llama.embedding_length"), 64);
  EXPECT_EQ(number(m, "llama.feed_forward_length"), 96);
  EXPECT_EQ(number(m, "llama.attention.head_count"), 8);
  EXPECT_EQ(number(m, "llama.attention.head_count_kv"), 2);
  EXPECT_EQ(number(m, "llama.attention.key_length"), 8);
  EXPECT_EQ(number(m, "llama.attention.value_length"), 8);
  EXPECT_EQ(number(m, "llama.attention.layer_norm_rms_epsilon"), 1e-5);
  EXPECT_EQ(number(m, "llama.vocab_size"), 100);
  EXPECT_EQ(number(m, "llama.context_length"), 512);
  EXPECT_EQ(number(m, "llama.rope.freq_base"), 500000);
  EXPECT_EQ(number(m, "llama.rope.dimension_count"), 8);
  EXPECT_FALSE(m.has("llama.attention.sliding_window"));
  EXPECT_FALSE(m.has("llama.rope.scaling.type"));
}

TEST(HuggingFaceConfig, ExplicitHeadSizeAndOneKeyHeadPerQueryHead) {
  json c = config("llama", {{"head_dim", 24}});
  c.erase("num_key_value_heads");
  const Metadata m = translated(c);
  EXPECT_EQ(number(m, "llama.attention.key_length"), 24);
  EXPECT_EQ(number(m, "llama.attention.head_count_kv"), 8);
  EXPECT_EQ(number(m, "llama.rope.freq_base"), 10000);
}

TEST(HuggingFaceConfig, LlamaThreeRopeInBothSpellings) {
  const json scaling = {{"rope_type", "llama3"},
                        {"factor", 32.0},
                        {"low_freq_factor", 1.0},
                        {"high_freq_factor", 4.0},
                        {"original_max_position_embeddings", 8192}};
  json parameters = scaling;
  parameters["rope_theta"] = 500000.0;
  for (const json& more : {json{{"rope_theta", 500000.0}, {"rope_scaling", scaling}},
                           json{{"rope_theta", 500000.0}, {"rope_parameters", scaling}},
                           json{{"rope_parameters", parameters}}}) {
    const Metadata m = translated(config("llama", more));
    EXPECT_EQ(number(m, "llama.rope.freq_base"), 500000);
    EXPECT_EQ(**m.text("llama.rope.scaling.type"), "llama3");
    EXPECT_EQ(number(m, "llama.rope.scaling.factor"), 32);
    EXPECT_EQ(number(m, "llama.rope.scaling.low_freq_factor"), 1);
    EXPECT_EQ(number(m, "llama.rope.scaling.high_freq_factor"), 4);
    EXPECT_EQ(number(m, "llama.rope.scaling.original_context_length"), 8192);
  }
}

TEST(HuggingFaceConfig, Yarn) {
  const json scaling = {{"type", "yarn"},
                        {"factor", 4.0},
                        {"attention_factor", 2.0},
                        {"beta_fast", 16.0},
                        {"original_max_position_embeddings", 128}};
  const Metadata m = translated(config("qwen2", {{"rope_scaling", scaling}}));
  EXPECT_EQ(**m.text("qwen2.rope.scaling.type"), "yarn");
  EXPECT_EQ(number(m, "qwen2.rope.scaling.yarn_beta_fast"), 16);
  EXPECT_EQ(number(m, "qwen2.rope.scaling.original_context_length"), 128);
  EXPECT_DOUBLE_EQ(number(m, "qwen2.rope.scaling.attn_factor"), 2 / (0.1 * std::log(4.0) + 1));
}

TEST(HuggingFaceConfig, MistralHasAWindowInEveryLayer) {
  const Metadata m = translated(config("mistral", {{"sliding_window", 128}}));
  EXPECT_EQ(**m.text("general.architecture"), "llama");
  EXPECT_EQ(number(m, "llama.attention.sliding_window"), 128);
  EXPECT_THAT(**m.booleans("llama.attention.sliding_window_pattern"),
              ElementsAre(true, true, true, true));
  EXPECT_FALSE(translated(config("mistral", {{"sliding_window", nullptr}}))
                   .has("llama.attention.sliding_window"));
}

TEST(HuggingFaceConfig, QwenHasWindowsWhereConfigured) {
  const json off = {
      {"sliding_window", 128}, {"use_sliding_window", false}, {"max_window_layers", 2}};
  EXPECT_FALSE(translated(config("qwen2", off)).has("qwen2.attention.sliding_window"));
  json on = off;
  on["use_sliding_window"] = true;
  EXPECT_THAT(**translated(config("qwen2", on)).booleans("qwen2.attention.sliding_window_pattern"),
              ElementsAre(false, false, true, true));
  on["layer_types"] = {"full_attention", "sliding_attention", "full_attention", "full_attention"};
  EXPECT_THAT(**translated(config("qwen3", on)).booleans("qwen3.attention.sliding_window_pattern"),
              ElementsAre(false, true, false, false));
}

TEST(HuggingFaceConfig, GemmaTwo) {
  const Metadata m = translated(config("gemma2", {{"query_pre_attn_scalar", 144},
                                                  {"attn_logit_softcapping", 50.0},
                                                  {"final_logit_softcapping", 30.0},
                                                  {"hidden_activation", "gelu_pytorch_tanh"},
                                                  {"sliding_window", 64}}));
  EXPECT_EQ(number(m, "gemma2.attention.key_length"), 256);
  EXPECT_EQ(number(m, "gemma2.attn_logit_softcapping"), 50);
  EXPECT_EQ(number(m, "gemma2.final_logit_softcapping"), 30);
  EXPECT_DOUBLE_EQ(number(m, "gemma2.attention.scale"), 1.0 / 12);
  EXPECT_THAT(**m.booleans("gemma2.attention.sliding_window_pattern"),
              ElementsAre(true, false, true, false));
}

// As published: the text model's settings are nearly all left to the library's defaults.
TEST(HuggingFaceConfig, GemmaThreeMultimodal) {
  const json published = json::parse(R"({"model_type": "gemma3", "eos_token_id": [1, 106],
    "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text",
      "num_hidden_layers": 7, "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
      "sliding_window": 1024}, "vision_config": {"hidden_size": 1152}})");
  const Metadata m = translated(published);
  EXPECT_EQ(**m.text("general.architecture"), "gemma3");
  EXPECT_EQ(number(m, "gemma3.embedding_length"), 2560);
  EXPECT_EQ(number(m, "gemma3.attention.head_count"), 8);
  EXPECT_EQ(number(m, "gemma3.attention.head_count_kv"), 4);
  EXPECT_EQ(number(m, "gemma3.rope.freq_base"), 1e6);
  EXPECT_EQ(number(m, "gemma3.rope.freq_base_swa"), 1e4);
  EXPECT_EQ(**m.text("gemma3.rope.scaling.type"), "linear");
  EXPECT_EQ(number(m, "gemma3.rope.scaling.factor"), 8);
  EXPECT_EQ(number(m, "gemma3.attention.scale"), 1.0 / 16);
  EXPECT_FALSE(m.has("gemma3.attn_logit_softcapping"));
  EXPECT_THAT(**m.booleans("gemma3.attention.sliding_window_pattern"),
              ElementsAre(true, true, true, true, true, false, true));
  EXPECT_EQ(number(m, "tokenizer.ggml.eos_token_id"), 1);
  EXPECT_THAT(**m.numbers("tokenizer.ggml.eos_token_ids"), ElementsAre(1, 106));
}

TEST(HuggingFaceConfig, GemmaThreeWithRopeForEachKindOfLayer) {
  const json parameters = {
      {"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 2e6}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 3e4}}}};
  const Metadata m = translated(config("gemma3_text", {{"rope_parameters", parameters}}));
  EXPECT_EQ(number(m, "gemma3.rope.freq_base"), 2e6);
  EXPECT_EQ(number(m, "gemma3.rope.freq_base_swa"), 3e4);
  EXPECT_EQ(**m.text("gemma3.rope.scaling.type"), "linear");
  EXPECT_EQ(number(m, "gemma3.rope.scaling.factor"), 8);
}

TEST(HuggingFaceConfig, PhiThreeLongRope) {
  const json more = {
      {"original_max_position_embeddings", 128},
      {"partial_rotary_factor", 0.5},
      {"sliding_window", 2047},
      {"rope_scaling",
       {{"type", "longrope"}, {"short_factor", {1.0, 1.5}}, {"long_factor", {2.0, 4.0}}}}};
  const Metadata m = translated(config("phi3", more));
  EXPECT_EQ(number(m, "phi3.rope.dimension_count"), 4);
  EXPECT_EQ(**m.text("phi3.rope.scaling.type"), "longrope");
  EXPECT_EQ(number(m, "phi3.rope.scaling.factor"), 4);
  EXPECT_EQ(number(m, "phi3.rope.scaling.original_context_length"), 128);
  EXPECT_DOUBLE_EQ(number(m, "phi3.rope.scaling.attn_factor"),
                   std::sqrt(1 + std::log(4.0) / std::log(128.0)));
  EXPECT_THAT(**m.numbers("phi3.rope.scaling.short_factors"), ElementsAre(1, 1.5));
  EXPECT_THAT(**m.numbers("phi3.rope.scaling.long_factors"), ElementsAre(2, 4));
  EXPECT_EQ(number(m, "phi3.attention.sliding_window"), 2047);
}

TEST(HuggingFaceConfig, ErrorsNameTheProblem) {
  EXPECT_THAT(config_problem(config("mamba")),
              HasSubstr("'mamba' is not supported; the supported ones are "));
  EXPECT_THAT(config_problem(json::array()), HasSubstr("not an object"));
  EXPECT_THAT(config_problem(json::object()), HasSubstr("'model_type' is missing"));
  json no_width = config("llama");
  no_width.erase("hidden_size");
  EXPECT_THAT(config_problem(no_width), HasSubstr("'hidden_size' is missing"));
  const auto problem_with = [](const json& more) { return config_problem(config("llama", more)); };
  EXPECT_THAT(problem_with({{"num_hidden_layers", -1}}), HasSubstr("'num_hidden_layers' is not"));
  EXPECT_THAT(problem_with({{"num_hidden_layers", 1ull << 62}}), HasSubstr("more than 4096"));
  EXPECT_THAT(problem_with({{"num_attention_heads", 0}}), HasSubstr("'num_attention_heads' is 0"));
  EXPECT_THAT(problem_with({{"rms_norm_eps", "x"}}), HasSubstr("'rms_norm_eps' is not a number"));
  EXPECT_THAT(problem_with({{"hidden_act", "relu2"}}), HasSubstr("'relu2'"));
  EXPECT_THAT(problem_with({{"quantization_config", {{"quant_method", "awq"}}}}),
              HasSubstr("quantization_config"));
  EXPECT_THAT(problem_with({{"rope_scaling", {{"type", "dynamic"}, {"factor", 2.0}}}}),
              HasSubstr("'dynamic' is not supported"));
  EXPECT_THAT(problem_with({{"rope_scaling", {{"type", "linear"}}}}), HasSubstr("'factor'"));
  EXPECT_THAT(problem_with({{"rope_scaling", {{"type", "linear"}, {"factor", 0}}}}),
              HasSubstr("not above 0"));
  EXPECT_THAT(problem_with({{"rope_scaling", {{"type", "longrope"}, {"short_factor", {1.0}}}}}),
              HasSubstr("'short_factor' has 1 numbers instead of 4"));
  EXPECT_THAT(problem_with({{"sliding_window", 8}, {"layer_types", {"full_attention"}}}),
              HasSubstr("lists 1 layers of 4"));
  EXPECT_THAT(problem_with({{"partial_rotary_factor", 1.5}}), HasSubstr("between 0 and 1"));
  EXPECT_THAT(problem_with({{"eos_token_id", "x"}}), HasSubstr("'eos_token_id'"));
}

TEST(HuggingFaceNames, Tensors) {
  const auto& llama = *find_family("llama");
  const auto& gemma = *find_family("gemma3_text");
  const auto& phi = *find_family("phi3");
  EXPECT_EQ(gguf_tensor_name("model.embed_tokens.weight", llama), "token_embd.weight");
  EXPECT_EQ(gguf_tensor_name("model.norm.weight", llama), "output_norm.weight");
  EXPECT_EQ(gguf_tensor_name("lm_head.weight", llama), "output.weight");
  EXPECT_EQ(gguf_tensor_name("model.layers.12.self_attn.q_proj.bias", llama), "blk.12.attn_q.bias");
  EXPECT_EQ(gguf_tensor_name("model.layers.0.self_attn.o_proj.weight", llama),
            "blk.0.attn_output.weight");
  EXPECT_EQ(gguf_tensor_name("model.layers.0.post_attention_layernorm.weight", llama),
            "blk.0.ffn_norm.weight");
  EXPECT_EQ(gguf_tensor_name("model.layers.0.post_attention_layernorm.weight", gemma),
            "blk.0.post_attention_norm.weight");
  EXPECT_EQ(gguf_tensor_name("model.layers.0.pre_feedforward_layernorm.weight", gemma),
            "blk.0.ffn_norm.weight");
  EXPECT_EQ(gguf_tensor_name("model.layers.0.post_feedforward_layernorm.weight", gemma),
            "blk.0.post_ffw_norm.weight");
  EXPECT_EQ(gguf_tensor_name("model.layers.0.self_attn.k_norm.weight", gemma),
            "blk.0.attn_k_norm.weight");
  EXPECT_EQ(gguf_tensor_name("language_model.model.layers.3.mlp.down_proj.weight", gemma),
            "blk.3.ffn_down.weight");
  EXPECT_EQ(gguf_tensor_name("model.language_model.layers.3.mlp.up_proj.weight", gemma),
            "blk.3.ffn_up.weight");
  EXPECT_EQ(gguf_tensor_name("model.layers.1.mlp.gate_up_proj.weight", phi), "blk.1.ffn_up.weight");
  EXPECT_EQ(gguf_tensor_name("model.layers.1.self_attn.qkv_proj.weight", phi),
            "blk.1.attn_qkv.weight");
  // Tensors that are not part of the text model, and unknown ones.
  EXPECT_EQ(gguf_tensor_name("vision_tower.vision_model.x.weight", gemma), std::nullopt);
  EXPECT_EQ(gguf_tensor_name("multi_modal_projector.x.weight", gemma), std::nullopt);
  EXPECT_EQ(gguf_tensor_name("model.layers.0.self_attn.rotary_emb.inv_freq", llama), std::nullopt);
  for (const std::string name :
       {"model.layers.x.mlp.up_proj.weight", "model.layers.1.mlp.up_proj.scales", "model.layers.",
        "model.layers.1.weight", "something"})
    EXPECT_EQ(gguf_tensor_name(name, llama), name);
}

class HuggingFaceFolderTest : public ::testing::Test {
 protected:
  void SetUp() override { folder_.write("config.json", config("llama").dump()); }

  static std::string one(std::string_view name) {
    return safetensors(
        "{\"" + std::string(name) + R"(":{"dtype":"F16","shape":[2,4],"data_offsets":[0,16]}})",
        16);
  }
  auto open() const { return ModelFile::open(folder_.path()); }

  test::TemporaryFolder folder_;
};

TEST_F(HuggingFaceFolderTest, OneFile) {
  folder_.write("model.safetensors", one("model.embed_tokens.weight"));
  folder_.write("consolidated.safetensors", "not looked at");
  folder_.write("tokenizer.json", "{\"x\":1}");
  folder_.write("chat_template.jinja", "{{ x }}");
  folder_.write("generation_config.json", R"({"eos_token_id": [7, 8], "bos_token_id": 3})");
  const auto file = open();
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ((*file)->kind(), FileKind::kHuggingFace);
  ASSERT_EQ((*file)->tensors().size(), 1u);
  const ModelTensor* const tensor = (*file)->find("token_embd.weight");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->rows, 2u);
  EXPECT_EQ(std::to_integer<int>(tensor->bytes[5]), 5);
  EXPECT_EQ((*file)->tokenizer_json(), "{\"x\":1}");
  EXPECT_EQ((*file)->tokenizer_config_json(), std::nullopt);
  EXPECT_EQ(**(*file)->metadata().text("tokenizer.chat_template"), "{{ x }}");
  EXPECT_THAT(**(*file)->metadata().numbers("tokenizer.ggml.eos_token_ids"), ElementsAre(7, 8));
  EXPECT_EQ(**(*file)->metadata().text("general.name"), folder_.path().filename().string());
}

TEST_F(HuggingFaceFolderTest, SeveralFilesWithAnIndex) {
  folder_.write("a.safetensors", one("model.embed_tokens.weight"));
  folder_.write("b.safetensors", one("lm_head.weight"));
  folder_.write("c.safetensors", "not looked at");
  folder_.write("model.safetensors.index.json",
                R"({"metadata":{"total_size":[32]},"weight_map":{"model.embed_tokens.weight":)"
                R"("a.safetensors","lm_head.weight":"b.safetensors"}})");
  const auto file = open();
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_NE((*file)->find("token_embd.weight"), nullptr);
  EXPECT_NE((*file)->find("output.weight"), nullptr);
  std::filesystem::remove(folder_ / "b.safetensors");
  EXPECT_THAT(problem_of(open()), HasSubstr("b.safetensors"));
}

TEST_F(HuggingFaceFolderTest, ATensorInTwoFilesIsNamed) {
  folder_.write("a.safetensors", one("model.embed_tokens.weight"));
  folder_.write("b.safetensors", one("model.embed_tokens.weight"));
  EXPECT_THAT(problem_of(open()), HasSubstr("'token_embd.weight' occurs twice"));
}

TEST_F(HuggingFaceFolderTest, TiedEmbeddings) {
  folder_.write("a.safetensors", one("model.embed_tokens.weight"));
  folder_.write("b.safetensors", one("lm_head.weight"));
  folder_.write("config.json", config("llama", {{"tie_word_embeddings", true}}).dump());
  auto file = open();
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ((*file)->find("output.weight"), nullptr);
  std::filesystem::remove(folder_ / "b.safetensors");
  EXPECT_EQ(problem_of(open()), "");
  folder_.write("config.json", config("llama", {{"tie_word_embeddings", false}}).dump());
  EXPECT_THAT(problem_of(open()), HasSubstr("'lm_head.weight' is missing"));
}

TEST_F(HuggingFaceFolderTest, WithoutWeightsTheTokenizerStillWorks) {
  folder_.write("tokenizer.json", "{}");
  EXPECT_EQ(problem_of(open()), "");
  std::filesystem::remove(folder_ / "config.json");
  EXPECT_EQ(problem_of(open()), "");
  std::filesystem::remove(folder_ / "tokenizer.json");
  EXPECT_THAT(problem_of(open()), HasSubstr("config.json"));
}

TEST_F(HuggingFaceFolderTest, ErrorsNameTheProblem) {
  folder_.write("pytorch_model.bin", "x");
  EXPECT_THAT(problem_of(open()), HasSubstr("only *.safetensors"));
  folder_.write("model.safetensors", "x");
  EXPECT_THAT(problem_of(open()), HasSubstr("model.safetensors: byte 0"));
  folder_.write("model.safetensors.index.json", R"({"weight_map":{"a":"../../etc/passwd"}})");
  EXPECT_THAT(problem_of(open()), HasSubstr("is not a file of this folder"));
  folder_.write("model.safetensors.index.json", R"({"weight_map":{"a":1}})");
  EXPECT_THAT(problem_of(open()), HasSubstr("tensor 'a': not the name of a file"));
  folder_.write("model.safetensors.index.json", "{}");
  EXPECT_THAT(problem_of(open()), HasSubstr("'weight_map' is missing"));
  folder_.write("generation_config.json", "[");
  EXPECT_THAT(problem_of(open()), HasSubstr("generation_config.json: byte"));
  folder_.write("config.json", "{\n\"a\" 1}");
  EXPECT_THAT(problem_of(open()), HasSubstr("config.json: byte 7: not valid JSON"));
  folder_.write("config.json", std::string(300000, ' '));
  EXPECT_THAT(problem_of(open()), HasSubstr("300000 bytes of JSON"));
  folder_.write("config.json", std::string(50000, '['));
  EXPECT_THAT(problem_of(open()), HasSubstr("too many levels"));
}

}  // namespace
}  // namespace hearth
