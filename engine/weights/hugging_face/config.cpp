#include "engine/weights/hugging_face/config.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/weights/in_quotes.h"

namespace hearth::hugging_face {
namespace {

// No model has more; this bounds a list with one entry per layer.
constexpr std::uint64_t kMaxLayers = 4096;

// Translates the text model's part of config.json to metadata of its family.
class Translation {
 public:
  Translation(const ConfigReader& config, const Family& family, Metadata& metadata)
      : config_(config), family_(family), metadata_(metadata) {}

  Status run() {
    HEARTH_TRY(refuse_unsupported());
    metadata_.set("general.architecture", std::string(family_.architecture));
    HEARTH_TRY(sizes());
    HEARTH_TRY(experts());
    HEARTH_TRY(optional_number("attn_logit_softcapping", "attn_logit_softcapping"));
    HEARTH_TRY(optional_number("final_logit_softcapping", "final_logit_softcapping"));
    HEARTH_ASSIGN(const auto scalar, number("query_pre_attn_scalar"));
    if (scalar && *scalar <= 0) return invalid("'query_pre_attn_scalar' is not above 0");
    if (scalar) set("attention.scale", 1.0 / std::sqrt(*scalar));
    HEARTH_TRY(window());
    return translate_rope(config_, family_,
                          {.head_dim = head_dim_, .context_length = context_length_}, metadata_);
  }

 private:
  void set(std::string_view key, MetadataValue value) {
    metadata_.set(fmt::format("{}.{}", family_.architecture, key), std::move(value));
  }

  // A field that is null has no value; one that is absent gets the family's default.
  Result<std::optional<double>> number(std::string_view field) const {
    if (!config_.has(field)) return family_.default_of(field);
    return config_.number(field);
  }

  Result<std::optional<std::uint64_t>> integer(std::string_view field) const {
    if (config_.has(field)) return config_.integer(field);
    std::optional<std::uint64_t> value;
    if (const auto number = family_.default_of(field)) value = static_cast<std::uint64_t>(*number);
    return value;
  }

  Result<std::uint64_t> needed(std::string_view field) const {
    HEARTH_ASSIGN(const auto value, integer(field));
    if (!value || *value == 0)
      return invalid(fmt::format("{} is {}", in_quotes(field), value ? "0" : "missing"));
    return *value;
  }

  Status optional_number(std::string_view field, std::string_view key) {
    HEARTH_ASSIGN(const auto value, number(field));
    if (value) set(key, *value);
    return {};
  }

  Status refuse_unsupported() const {
    for (const std::string_view field : {"hidden_act", "hidden_activation"}) {
      HEARTH_ASSIGN(const auto name, config_.text(field));
      if (name && !name->starts_with(family_.activation))
        return unsupported(fmt::format("{}: activation {} is not supported for {}",
                                       in_quotes(field), in_quotes(*name), family_.model_type));
    }
    HEARTH_ASSIGN(const auto both_ways, config_.boolean("use_bidirectional_attention"));
    if (both_ways.value_or(false))
      return unsupported("'use_bidirectional_attention': only causal attention is supported");
    return {};
  }

  Status sizes() {
    HEARTH_ASSIGN(layers_, needed("num_hidden_layers"));
    if (layers_ > kMaxLayers)
      return invalid(fmt::format("'num_hidden_layers': {} is more than {}", layers_, kMaxLayers));
    HEARTH_ASSIGN(context_length_, needed("max_position_embeddings"));
    HEARTH_ASSIGN(const auto width, needed("hidden_size"));
    HEARTH_ASSIGN(const auto feed_forward, needed("intermediate_size"));
    HEARTH_ASSIGN(const auto vocabulary, needed("vocab_size"));
    HEARTH_ASSIGN(const auto heads, needed("num_attention_heads"));
    HEARTH_ASSIGN(const auto kv_heads, integer("num_key_value_heads"));
    HEARTH_ASSIGN(const auto head_dim, integer("head_dim"));
    HEARTH_ASSIGN(const auto epsilon, number("rms_norm_eps"));
    if (!epsilon) return invalid("'rms_norm_eps' is missing");
    head_dim_ = head_dim.value_or(width / heads);
    if (head_dim_ == 0) return invalid("'head_dim' is 0");
    set("block_count", layers_);
    set("context_length", context_length_);
    set("embedding_length", width);
    set("feed_forward_length", feed_forward);
    set("vocab_size", vocabulary);
    set("attention.head_count", heads);
    set("attention.head_count_kv", kv_heads.value_or(heads));
    set("attention.key_length", head_dim_);
    set("attention.value_length", head_dim_);
    set("attention.layer_norm_rms_epsilon", *epsilon);
    return {};
  }

  // Only families with experts have a default for how many are used.
  Status experts() {
    if (!family_.default_of("num_experts_per_tok")) return {};
    const std::string_view all =
        family_.default_of("num_experts") ? "num_experts" : "num_local_experts";
    HEARTH_ASSIGN(const auto count, needed(all));
    HEARTH_ASSIGN(const auto used, needed("num_experts_per_tok"));
    set("expert_count", count);
    set("expert_used_count", used);
    if (family_.default_of("moe_intermediate_size")) {
      HEARTH_ASSIGN(const auto width, needed("moe_intermediate_size"));
      set("expert_feed_forward_length", width);
      HEARTH_ASSIGN(const auto normed, config_.boolean("norm_topk_prob"));
      set("expert_weights_norm", normed.value_or(false));
    }
    HEARTH_ASSIGN(const auto step, integer("decoder_sparse_step"));
    const nlohmann::json* const dense = config_.find("mlp_only_layers");
    if (step.value_or(1) != 1 || (dense != nullptr && !dense->empty()))
      return unsupported("layers without experts among those with experts are not supported");
    HEARTH_ASSIGN(const auto limit, config_.number("swiglu_limit"));
    HEARTH_ASSIGN(const auto alpha, config_.number("swiglu_alpha"));
    if (limit.value_or(7.0) != 7.0 || std::abs(alpha.value_or(1.702) - 1.702) > 1e-6)
      return unsupported("'swiglu_limit' is supported only as 7, with an alpha of 1.702");
    return {};
  }

  Status window() {
    HEARTH_ASSIGN(const auto window, integer("sliding_window"));
    if (!window || *window == 0) return {};
    HEARTH_ASSIGN(const std::vector<bool> sliding, windowed_layers());
    if (std::find(sliding.begin(), sliding.end(), true) == sliding.end()) return {};
    set("attention.sliding_window", *window);
    set("attention.sliding_window_pattern", sliding);
    return {};
  }

  Result<std::vector<bool>> windowed_layers() const {
    HEARTH_ASSIGN(const auto types, config_.texts("layer_types"));
    if (types) return listed_layers(*types);
    std::vector<bool> sliding(layers_, true);
    if (family_.window_rule == WindowRule::kFromLayer) {
      HEARTH_ASSIGN(const auto used, config_.boolean("use_sliding_window"));
      HEARTH_ASSIGN(const auto first, integer("max_window_layers"));
      for (std::uint64_t i = 0; i < layers_; ++i)
        sliding[i] = used.value_or(false) && i >= first.value_or(0);
    } else if (family_.window_rule == WindowRule::kAllButEveryN) {
      HEARTH_ASSIGN(const auto every, needed("sliding_window_pattern"));
      for (std::uint64_t i = 0; i < layers_; ++i) sliding[i] = (i + 1) % every != 0;
    }
    return sliding;
  }

  Result<std::vector<bool>> listed_layers(const std::vector<std::string>& types) const {
    if (types.size() != layers_)
      return invalid(fmt::format("'layer_types' lists {} layers of {}", types.size(), layers_));
    std::vector<bool> sliding;
    for (const std::string& type : types) {
      if (type != "sliding_attention" && type != "full_attention")
        return unsupported(fmt::format("'layer_types': {} is not supported", in_quotes(type)));
      sliding.push_back(type == "sliding_attention");
    }
    return sliding;
  }

  const ConfigReader& config_;
  const Family& family_;
  Metadata& metadata_;
  std::uint64_t layers_ = 0, context_length_ = 0, head_dim_ = 0;
};

// Experts in MXFP4 are the only quantized weights that folders are published with and we read.
Status check_quantization(const ConfigReader& config) {
  HEARTH_ASSIGN(const auto quantized, config.object("quantization_config"));
  if (!quantized) return {};
  HEARTH_ASSIGN(const auto method, quantized->text("quant_method"));
  if (method == "mxfp4") return {};
  return unsupported(
      "'quantization_config': quantized weights other than mxfp4 are read from GGUF files only");
}

}  // namespace

Result<Config> translate_config(const nlohmann::json& root) {
  if (!root.is_object()) return invalid("not an object");
  const ConfigReader whole(root);
  HEARTH_TRY(check_quantization(whole));
  // A multimodal model keeps the settings of its text model in an object of their own.
  HEARTH_ASSIGN(const auto text_half, whole.object("text_config"));
  const ConfigReader config = text_half.value_or(whole);
  HEARTH_ASSIGN(const auto model_type, config.text("model_type"));
  if (!model_type) return invalid("'model_type' is missing");
  Config result;
  result.family = find_family(*model_type);
  if (result.family == nullptr)
    return unsupported(fmt::format("model type {} is not supported; the supported ones are {}",
                                   in_quotes(*model_type), family_names()));
  HEARTH_ASSIGN(const auto inner_tied, config.boolean("tie_word_embeddings"));
  HEARTH_ASSIGN(const auto outer_tied, whole.boolean("tie_word_embeddings"));
  result.tied = inner_tied ? inner_tied : outer_tied;
  HEARTH_TRY(Translation(config, *result.family, result.metadata).run());
  HEARTH_TRY(translate_token_ids(root, result.metadata));
  return result;
}

Status translate_token_ids(const nlohmann::json& root, Metadata& metadata) {
  if (!root.is_object()) return invalid("not an object");
  const ConfigReader config(root);
  const nlohmann::json* const end = config.find("eos_token_id");
  if (end != nullptr) {
    const nlohmann::json list = end->is_array() ? *end : nlohmann::json::array({*end});
    std::vector<std::uint64_t> ids;
    for (const nlohmann::json& id : list) {
      if (!id.is_number_unsigned()) return invalid("'eos_token_id' is not a token id");
      ids.push_back(id.get<std::uint64_t>());
    }
    if (!ids.empty()) {
      metadata.set("tokenizer.ggml.eos_token_id", ids.front());
      metadata.set("tokenizer.ggml.eos_token_ids", std::move(ids));
    }
  }
  HEARTH_ASSIGN(const auto begin, config.integer("bos_token_id"));
  if (begin) metadata.set("tokenizer.ggml.bos_token_id", *begin);
  return {};
}

void translate_sampling(const nlohmann::json& root, Metadata& metadata) {
  constexpr std::pair<const char*, const char*> kFields[] = {
      {"temperature", "general.sampling.temp"},
      {"top_k", "general.sampling.top_k"},
      {"top_p", "general.sampling.top_p"},
      {"min_p", "general.sampling.min_p"},
      {"repetition_penalty", "general.sampling.penalty_repeat"},
      {"typical_p", "general.sampling.typical_p"},
      {"epsilon_cutoff", "general.sampling.epsilon_cutoff"},
      {"eta_cutoff", "general.sampling.eta_cutoff"},
      {"do_sample", "general.sampling.do_sample"},
  };
  const ConfigReader config(root);
  for (const auto& [field, key] : kFields) {
    const nlohmann::json* const value = config.find(field);
    if (value == nullptr) continue;
    if (value->is_boolean())
      metadata.set(key, value->get<bool>());
    else if (value->is_number_unsigned())
      metadata.set(key, value->get<std::uint64_t>());
    else if (value->is_number_integer())
      metadata.set(key, value->get<std::int64_t>());
    else if (value->is_number())
      metadata.set(key, value->get<double>());
    else
      metadata.set(key, value->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
}

}  // namespace hearth::hugging_face
