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
    {"input_layernorm", "attn_norm"},    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},      {"self_attn.v_proj", "attn_v"},
    {"self_attn.qkv_proj", "attn_qkv"},  {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"}, {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
    {"mlp.gate_up_proj", "ffn_up"},      {"mlp.down_proj", "ffn_down"},
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

// "3.mlp.up_proj.weight" becomes "blk.3.ffn_up.weight".
std::optional<std::string> layer_name(std::string_view name, const Family& family) {
  const std::size_t dot = name.find('.');
  const std::size_t last = name.rfind('.');
  if (dot == std::string_view::npos || last <= dot) return std::nullopt;
  const std::string_view number = name.substr(0, dot);
  const std::string_view part = name.substr(dot + 1, last - dot - 1);
  const std::string_view kind = name.substr(last);
  if (number.empty() || number.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  if (kind != ".weight" && kind != ".bias") return std::nullopt;
  auto to = renamed(kLayer, part);
  if (!to) to = family.post_norms ? renamed(kFourNorms, part) : renamed(kTwoNorms, part);
  if (!to) return std::nullopt;
  return std::string("blk.").append(number).append(".").append(*to).append(kind);
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
