#include "engine/weights/hugging_face/families.h"

#include <array>

namespace hearth::hugging_face {
namespace {

constexpr FieldDefault kCommon[] = {{"rope_theta", 10000}};
constexpr FieldDefault kGemma2[] = {{"rope_theta", 10000},           {"head_dim", 256},
                                    {"query_pre_attn_scalar", 256},  {"attn_logit_softcapping", 50},
                                    {"final_logit_softcapping", 30}, {"sliding_window", 4096},
                                    {"sliding_window_pattern", 2}};
// Published multimodal gemma 3 models only list what differs from these defaults for their text
// model.
constexpr FieldDefault kGemma3[] = {
    {"vocab_size", 262208},      {"hidden_size", 2304},
    {"intermediate_size", 9216}, {"num_hidden_layers", 26},
    {"num_attention_heads", 8},  {"num_key_value_heads", 4},
    {"head_dim", 256},           {"max_position_embeddings", 131072},
    {"rms_norm_eps", 1e-6},      {"query_pre_attn_scalar", 256},
    {"rope_theta", 1000000},     {"rope_local_base_freq", 10000},
    {"sliding_window", 4096},    {"sliding_window_pattern", 6}};

constexpr FieldDefault kGptOss[] = {{"rope_theta", 150000},     {"head_dim", 64},
                                    {"sliding_window", 128},    {"sliding_window_pattern", 2},
                                    {"num_local_experts", 128}, {"num_experts_per_tok", 4}};
constexpr FieldDefault kMixtral[] = {
    {"rope_theta", 1000000}, {"num_local_experts", 8}, {"num_experts_per_tok", 2}};
constexpr FieldDefault kQwen3Moe[] = {{"rope_theta", 10000},
                                      {"num_experts", 128},
                                      {"num_experts_per_tok", 8},
                                      {"moe_intermediate_size", 768},
                                      {"decoder_sparse_step", 1}};

constexpr std::array kFamilies = {
    Family{"gemma2", "gemma2", WindowRule::kAllButEveryN, "gelu", true, true, kGemma2},
    Family{"gemma3_text", "gemma3", WindowRule::kAllButEveryN, "gelu", true, true, kGemma3},
    Family{"gpt_oss", "gpt-oss", WindowRule::kAllButEveryN, "silu", false, false, kGptOss},
    Family{"llama", "llama", WindowRule::kAll, "silu", false, false, kCommon},
    Family{"mistral", "llama", WindowRule::kAll, "silu", false, false, kCommon},
    Family{"mixtral", "llama", WindowRule::kAll, "silu", false, false, kMixtral},
    Family{"phi3", "phi3", WindowRule::kAll, "silu", false, false, kCommon},
    Family{"qwen2", "qwen2", WindowRule::kFromLayer, "silu", false, false, kCommon},
    Family{"qwen3", "qwen3", WindowRule::kFromLayer, "silu", false, false, kCommon},
    Family{"qwen3_moe", "qwen3moe", WindowRule::kFromLayer, "silu", false, false, kQwen3Moe},
};

}  // namespace

std::optional<double> Family::default_of(std::string_view field) const {
  for (const FieldDefault& item : defaults)
    if (item.field == field) return item.value;
  return std::nullopt;
}

const Family* find_family(std::string_view model_type) {
  for (const Family& family : kFamilies)
    if (family.model_type == model_type) return &family;
  return nullptr;
}

std::string family_names() {
  std::string names;
  for (const Family& family : kFamilies) {
    if (!names.empty()) names += ", ";
    names += family.model_type;
  }
  return names;
}

}  // namespace hearth::hugging_face
