#include "engine/model/config_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "engine/ops/attention.h"
#include "engine/ops/experts.h"

namespace hearth {
namespace {

constexpr uint32_t kMostLayers = 4096;  // far above any model

}  // namespace

std::string ConfigReader::full(std::string_view key) const {
  return fmt::format("{}.{}", architecture_, key);
}

void ConfigReader::fail(std::string what) {
  if (!error_)
    error_ = Error{ErrorKind::kInvalid, fmt::format("{}: {}", file_.name(), std::move(what))};
}

template <class T>
std::optional<T> ConfigReader::take(Result<std::optional<T>> result) {
  if (result.ok()) return std::move(result).value();
  if (!error_) error_ = std::move(result).error();
  return std::nullopt;
}

uint32_t ConfigReader::count(std::string_view key) {
  if (!file_.metadata().has(full(key))) fail(fmt::format("key {} is missing", full(key)));
  return count(key, 0);
}

uint32_t ConfigReader::count(std::string_view key, uint32_t otherwise) {
  const auto value = take(file_.metadata().unsigned_integer(full(key)));
  if (!value) return otherwise;
  if (*value > std::numeric_limits<uint32_t>::max()) {
    fail(fmt::format("key {} is {}, which is too large", full(key), *value));
    return otherwise;
  }
  return static_cast<uint32_t>(*value);
}

double ConfigReader::number(std::string_view key) {
  if (!file_.metadata().has(full(key))) fail(fmt::format("key {} is missing", full(key)));
  return number(key, 0.0);
}

double ConfigReader::number(std::string_view key, double otherwise) {
  const double value = take(file_.metadata().number(full(key))).value_or(otherwise);
  if (!std::isfinite(value)) fail(fmt::format("key {} is not a finite number", full(key)));
  return value;
}

std::string ConfigReader::text(std::string_view key, std::string_view otherwise) {
  return std::string(take(file_.metadata().text(full(key))).value_or(otherwise));
}

bool ConfigReader::flag(std::string_view key, bool otherwise) {
  return take(file_.metadata().boolean(full(key))).value_or(otherwise);
}

std::vector<float> ConfigReader::numbers(std::string_view key) {
  const auto values = take(file_.metadata().numbers(full(key)));
  return values ? std::vector<float>(values->begin(), values->end()) : std::vector<float>{};
}

std::vector<bool> ConfigReader::window_pattern(uint32_t layers) {
  constexpr std::string_view kKey = "attention.sliding_window_pattern";
  const auto period = file_.metadata().unsigned_integer(full(kKey));
  if (!period.ok())
    return take(file_.metadata().booleans(full(kKey))).value_or(std::vector<bool>{});
  if (!*period) return {};
  std::vector<bool> windowed(std::min(layers, kMostLayers));
  for (size_t layer = 0; layer < windowed.size(); ++layer)
    windowed[layer] = **period == 0 || (layer + 1) % **period != 0;
  return windowed;
}

std::vector<float> ConfigReader::tensor(std::string_view name) {
  const ModelTensor* tensor = file_.find(name);
  if (tensor == nullptr) return {};
  if (tensor->format != WeightFormat::kF32 || tensor->rows != 1) {
    fail(fmt::format("tensor {} must be a vector of F32", name));
    return {};
  }
  std::vector<float> values(tensor->cols);
  std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
  return values;
}

RopeConfig ConfigReader::rope() {
  RopeConfig rope;
  RopeTableInfo& info = rope.info;
  info.base = number("rope.freq_base", 10000.0);
  info.factor = number("rope.scaling.factor", number("rope.scale_linear", 1.0));
  if (info.factor == 0) info.factor = 1;  // some files write 0 for "none"
  info.original_context = count("rope.scaling.original_context_length", 0);
  const double attention_factor = number("rope.scaling.attn_factor", 0.0);
  info.model_context = count("context_length", 0);

  rope.factors = tensor("rope_freqs.weight");
  if (!rope.factors.empty()) info.scaling = RopeScaling::kFactors;
  // Older files have a factor but no type.
  const bool old = info.factor != 1 && rope.factors.empty();
  const std::string type = text("rope.scaling.type", old ? "linear" : "none");
  if (type == "linear") {
    info.scaling = RopeScaling::kLinear;
  } else if (type == "llama3") {
    info.scaling = RopeScaling::kLlama3;
    info.low_freq_factor = number("rope.scaling.low_freq_factor", 1.0);
    info.high_freq_factor = number("rope.scaling.high_freq_factor", 4.0);
  } else if (type == "yarn") {
    info.scaling = RopeScaling::kYarn;
    if (info.original_context == 0) info.original_context = info.model_context;
    info.ext_factor = number("rope.scaling.yarn_ext_factor", 1.0);
    info.beta_fast = number("rope.scaling.yarn_beta_fast", 32.0);
    info.beta_slow = number("rope.scaling.yarn_beta_slow", 1.0);
    info.truncate = flag("rope.scaling.yarn_truncate", true);
  } else if (type == "longrope") {
    rope.factors = numbers("rope.scaling.short_factors");
    rope.long_factors = numbers("rope.scaling.long_factors");
    info.scaling = RopeScaling::kLongRope;
  } else if (type != "none") {
    fail(fmt::format("rope scaling {} is not supported; only linear, llama3, yarn and longrope are",
                     type));
  }
  // GGUF's form of long-rope: two tensors and no type.
  if (file_.find("rope_factors_long.weight") != nullptr) {
    rope.long_factors = tensor("rope_factors_long.weight");
    rope.factors = tensor("rope_factors_short.weight");
    info.scaling = RopeScaling::kLongRope;
  }
  // For YaRN the file's number multiplies the computed one; otherwise it replaces it.
  info.attention_factor = attention_factor;
  if (info.scaling == RopeScaling::kYarn && attention_factor != 0)
    info.attention_factor *= info.factor > 1 ? 0.1 * std::log(info.factor) + 1.0 : 1.0;
  return rope;
}

ModelConfig ConfigReader::common() {
  ModelConfig config;
  config.architecture = architecture_;
  config.layers = count("block_count");
  if (config.layers > kMostLayers) {  // checked before a list of them is made
    fail(fmt::format("{} layers are more than any model has", config.layers));
    config.layers = 0;
  }
  config.width = count("embedding_length");
  config.mlp_width = count("feed_forward_length");
  config.heads = count("attention.head_count");
  config.kv_heads = count("attention.head_count_kv", config.heads);
  config.head_size =
      count("attention.key_length", config.heads == 0 ? 0 : config.width / config.heads);
  if (count("attention.value_length", config.head_size) != config.head_size)
    fail("keys and values of different sizes are not supported");
  config.context = count("context_length");
  config.norm_epsilon = static_cast<float>(number("attention.layer_norm_rms_epsilon"));
  config.rope_dims = count("rope.dimension_count", config.head_size);
  config.rope = rope();
  config.attention_scale =
      config.head_size == 0 ? 0 : 1.0f / std::sqrt(static_cast<float>(config.head_size));
  config.window = count("attention.sliding_window", 0);
  config.windowed = window_pattern(config.layers);
  if (config.windowed.empty() && config.window > 0) config.windowed.assign(config.layers, true);

  // A file without tensors may still have a vocabulary.
  const ModelTensor* embedding = file_.find("token_embd.weight");
  config.vocabulary = count("vocab_size", 0);
  if (embedding != nullptr) config.vocabulary = static_cast<uint32_t>(embedding->rows);
  return config;
}

void ConfigReader::experts(ModelConfig& config) {
  config.experts = count("expert_count", 0);
  config.used_experts = count("expert_used_count", 0);
  if (config.experts == 0) return;
  config.mlp_width = count("expert_feed_forward_length", config.mlp_width);
  config.weights_over_all = !flag("expert_weights_norm", true);
  config.split_experts = file_.find("blk.0.ffn_gate.0.weight") != nullptr;
  if (config.used_experts == 0 || config.used_experts > config.experts ||
      config.experts > kMostExperts || config.used_experts > kMostUsedExperts) {
    fail(fmt::format("a mixture of {} out of {} experts is not supported; at most {} out of {} are",
                     config.used_experts, config.experts, kMostUsedExperts, kMostExperts));
    config.experts = config.used_experts = 0;
  }
}

void ConfigReader::need_experts(ModelConfig& config) {
  experts(config);
  if (config.experts == 0) fail(fmt::format("key {} is missing or 0", full("expert_count")));
}

Result<ModelConfig> ConfigReader::finish(ModelConfig config) const {
  if (error_) return *error_;
  const auto bad = [&](std::string what) {
    return Error{ErrorKind::kInvalid, fmt::format("{}: {}", file_.name(), std::move(what))};
  };
  // The bounds are far above any model; they keep sizes computed from these numbers from
  // overflowing.
  const auto within = [](uint32_t value, uint32_t most) { return value > 0 && value <= most; };
  if (!within(config.layers, kMostLayers) || !within(config.width, 1u << 20) ||
      !within(config.mlp_width, 1u << 22) || !within(config.heads, 4096) ||
      !within(config.kv_heads, 4096) || !within(config.context, 1u << 28))
    return bad(
        fmt::format("{} layers of width {}, {} heads over {}, MLP of {} and a context of {} "
                    "are not a valid model",
                    config.layers, config.width, config.heads, config.kv_heads, config.mlp_width,
                    config.context));
  if (config.heads % config.kv_heads != 0)
    return bad(fmt::format("{} heads cannot share {} KV heads", config.heads, config.kv_heads));
  if (config.head_size == 0 || config.head_size % kHeadSizeUnit != 0 ||
      config.head_size > kMaxHeadSize)
    return bad(fmt::format("heads of size {} are not supported; only multiples of {} up to {} are",
                           config.head_size, kHeadSizeUnit, kMaxHeadSize));
  if (config.rope_dims > config.head_size || config.rope_dims % 8 != 0)
    return bad(fmt::format("rope over {} of {} dimensions is not supported", config.rope_dims,
                           config.head_size));
  if (!config.windowed.empty() && config.windowed.size() != config.layers)
    return bad(fmt::format("the window pattern has {} entries for {} layers",
                           config.windowed.size(), config.layers));
  if (!config.windowed.empty() && config.window == 0)
    return bad("a sliding window of 0 tokens is not valid");
  if (!(config.norm_epsilon >= 0) || !std::isfinite(config.attention_scale))
    return bad("the scale of norms or attention is not valid");
  for (const RopeConfig* rope : {&config.rope, config.window_rope.data()})
    if (rope != nullptr)
      for (const std::vector<float>* list : {&rope->factors, &rope->long_factors})
        if (!list->empty() && list->size() != config.rope_dims / 2)
          return bad(
              fmt::format("{} rope factors for {} dimensions", list->size(), config.rope_dims));
  return config;
}

}  // namespace hearth
