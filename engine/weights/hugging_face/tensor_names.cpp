#include "engine/weights/hugging_face/tensor_names.h"

#include <span>

namespace hearth::hugging_face {
namespace {

struct Rename {
  std::string_view from, to;
};

constexpr Rename kWhole[] = {
    {"embed_tokens.weight", "token_embd.weight"},
    {"norm.weight", "output_norm.weight"},
};

// Without the ".weight" or ".bias" at the end.
constexpr Rename kLayer[] = {
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.qkv_proj", "attn_qkv"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.gate_up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.router", "ffn_gate_inp"},
    {"block_sparse_moe.gate", "ffn_gate_inp"},
};
// Of one expert; the expert's number comes between the two parts of a name, in both.
constexpr Rename kExpert[] = {
    {"gate_proj", "ffn_gate"}, {"up_proj", "ffn_up"}, {"down_proj", "ffn_down"},
    {"w1", "ffn_gate"},        {"w3", "ffn_up"},      {"w2", "ffn_down"},
};
// gpt-oss's, without a ".weight" at the end.
constexpr Rename kGptOssLayer[] = {
    {"self_attn.sinks", "attn_sinks.weight"},
    {"post_attention_layernorm.weight", "post_attention_norm.weight"},
    {"mlp.experts.gate_up_proj", "ffn_gate_up_exps.weight"},
    {"mlp.experts.gate_up_proj_bias", "ffn_gate_up_exps.bias"},
    {"mlp.experts.gate_up_proj_blocks", "ffn_gate_up_exps.mxfp4_blocks"},
    {"mlp.experts.gate_up_proj_scales", "ffn_gate_up_exps.mxfp4_exponents"},
    {"mlp.experts.down_proj", "ffn_down_exps.weight"},
    {"mlp.experts.down_proj_bias", "ffn_down_exps.bias"},
    {"mlp.experts.down_proj_blocks", "ffn_down_exps.mxfp4_blocks"},
    {"mlp.experts.down_proj_scales", "ffn_down_exps.mxfp4_exponents"},
};
constexpr Rename kTwoNorms[] = {{"post_attention_layernorm", "ffn_norm"}};
constexpr Rename kFourNorms[] = {{"post_attention_layernorm", "post_attention_norm"},
                                 {"pre_feedforward_layernorm", "ffn_norm"},
                                 {"post_feedforward_layernorm", "post_ffw_norm"}};

std::optional<std::string_view> renamed(std::span<const Rename> table, std::string_view name) {
  for (const Rename& item : table)
    if (item.from == name) return item.to;
  return std::nullopt;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The prefixes of the text model's names, longest first.
std::string_view without_prefix(std::string_view name) {
  for (const std::string_view prefix :
       {"language_model.model.", "model.language_model.", "model.", "language_model."})
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  return name;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "mlp.experts.5.up_proj" becomes "ffn_up.5".
std::optional<std::string> expert_name(std::string_view part) {
  for (const std::string_view prefix : {"mlp.experts.", "block_sparse_moe.experts."}) {
    if (!part.starts_with(prefix)) continue;
    const std::string_view inner = part.substr(prefix.size());
    const std::size_t dot = inner.find('.');
    if (dot == std::string_view::npos || !is_number(inner.substr(0, dot))) continue;
    if (const auto to = renamed(kExpert, inner.substr(dot + 1)))
      return std::string(*to).append(".").append(inner.substr(0, dot));
  }
  return std::nullopt;
}

// "3.mlp.up_proj.weight" becomes "blk.3.ffn_up.weight".
std::optional<std::string> layer_name(std::string_view name, const Family& family) {
  const std::size_t dot = name.find('.');
  const std::size_t last = name.rfind('.');
  if (dot == std::string_view::npos || last <= dot) return std::nullopt;
  const std::string_view number = name.substr(0, dot);
  const std::string_view part = name.substr(dot + 1, last - dot - 1);
  const std::string_view kind = name.substr(last);
  if (!is_number(number)) return std::nullopt;
  const std::string layer = std::string("blk.").append(number).append(".");
  if (family.architecture == "gpt-oss")
    if (const auto to = renamed(kGptOssLayer, name.substr(dot + 1)))
      return layer + std::string(*to);
  if (kind != ".weight" && kind != ".bias") return std::nullopt;
  if (const auto expert = expert_name(part)) return layer + *expert + std::string(kind);
  auto to = renamed(kLayer, part);
  if (!to) to = family.post_norms ? renamed(kFourNorms, part) : renamed(kTwoNorms, part);
  if (!to) return std::nullopt;
  return layer + std::string(*to) + std::string(kind);
}

}  // namespace

std::optional<std::string> gguf_tensor_name(std::string_view name, const Family& family) {
  if (contains(name, "vision_tower.") || contains(name, "multi_modal_projector.") ||
      name.ends_with(".rotary_emb.inv_freq"))
    return std::nullopt;
  constexpr std::string_view kLayers = "layers.";
  const std::string_view inner = without_prefix(name);
  if (inner == "lm_head.weight") return "output.weight";
  if (const auto to = renamed(kWhole, inner)) return std::string(*to);
  if (inner.starts_with(kLayers))
    if (auto to = layer_name(inner.substr(kLayers.size()), family)) return to;
  return std::string(name);
}

}  // namespace hearth::hugging_face
