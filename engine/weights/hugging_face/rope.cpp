// Translates the rotary embeddings of config.json. Up to version 4 of the transformers library
// these are rope_theta and rope_scaling; from version 5 on rope_parameters has both, once per kind
// of layer if they differ.
#include <cmath>

#include <fmt/format.h>

#include "engine/weights/hugging_face/config.h"
#include "engine/weights/in_quotes.h"

namespace hearth::hugging_face {
namespace {

class RopeTranslation {
 public:
  RopeTranslation(const ConfigReader& config, const Family& family, const RopeShape& shape,
                  Metadata& metadata)
      : config_(config), family_(family), shape_(shape), metadata_(metadata) {}

  Status run() {
    HEARTH_ASSIGN(const auto parameters, config_.object("rope_parameters"));
    HEARTH_ASSIGN(const auto scaling, config_.object("rope_scaling"));
    if (!parameters) {
      HEARTH_TRY(base(config_, "rope_theta", "rope.freq_base"));
      HEARTH_TRY(base(config_, "rope_local_base_freq", "rope.freq_base_swa"));
      HEARTH_TRY(dimensions(config_));
      return scaling ? scale(*scaling) : Status();
    }
    HEARTH_ASSIGN(const auto full, parameters->object("full_attention"));
    HEARTH_ASSIGN(const auto sliding, parameters->object("sliding_attention"));
    const ConfigReader main = full.value_or(*parameters);
    HEARTH_TRY(base(main.has("rope_theta") ? main : config_, "rope_theta", "rope.freq_base"));
    if (sliding) {
      HEARTH_TRY(base(*sliding, "rope_theta", "rope.freq_base_swa"));
      HEARTH_ASSIGN(const auto type, scaling_type(*sliding));
      if (type) return invalid("'rope_parameters': scaling of sliding layers is not supported");
    } else {
      HEARTH_TRY(base(config_, "rope_local_base_freq", "rope.freq_base_swa"));
    }
    HEARTH_TRY(dimensions(main.has("partial_rotary_factor") ? main : config_));
    return scale(main);
  }

 private:
  void set(std::string_view key, MetadataValue value) {
    metadata_.set(fmt::format("{}.{}", family_.architecture, key), std::move(value));
  }

  Status base(const ConfigReader& from, std::string_view field, std::string_view key) {
    HEARTH_ASSIGN(auto value, from.number(field));
    if (!value) value = family_.default_of(field);
    if (!value) return {};
    if (*value <= 0) return invalid(fmt::format("{} is not above 0", in_quotes(field)));
    set(key, *value);
    return {};
  }

  // How many elements of a head are rotated; always even.
  Status dimensions(const ConfigReader& from) {
    HEARTH_ASSIGN(const auto share, from.number("partial_rotary_factor"));
    const double turned = static_cast<double>(shape_.head_dim) * share.value_or(1.0);
    if (!(turned >= 2 && turned <= static_cast<double>(shape_.head_dim)))
      return invalid("'partial_rotary_factor' is not between 0 and 1");
    dimensions_ = static_cast<std::uint64_t>(turned);
    set("rope.dimension_count", dimensions_);
    return {};
  }

  // Empty if there is no scaling.
  static Result<std::optional<std::string>> scaling_type(const ConfigReader& from) {
    HEARTH_ASSIGN(auto type, from.text("rope_type"));
    if (!type) {
      // The field's first name.
      HEARTH_ASSIGN(type, from.text("type"));
    }
    if (type == "default") type.reset();
    if (type == "su") type = "longrope";
    return type;
  }

  Status scale(const ConfigReader& from) {
    HEARTH_ASSIGN(const auto type, scaling_type(from));
    if (!type) return {};
    set("rope.scaling.type", *type);
    if (*type == "linear") return copy_needed(from, "factor", "factor");
    if (*type == "llama3") return scale_llama3(from);
    if (*type == "yarn") return scale_yarn(from);
    if (*type == "longrope") return scale_longrope(from);
    return Error{ErrorKind::kUnsupported,
                 fmt::format("rope scaling {} is not supported; the supported ones are linear, "
                             "llama3, longrope, yarn",
                             in_quotes(*type))};
  }

  Result<bool> copy(const ConfigReader& from, std::string_view field, std::string_view key) {
    HEARTH_ASSIGN(const auto value, from.number(field));
    if (!value) return false;
    if (!(*value > 0)) return invalid(fmt::format("{} is not above 0", in_quotes(field)));
    set(fmt::format("rope.scaling.{}", key), *value);
    return true;
  }

  Status copy_needed(const ConfigReader& from, std::string_view field, std::string_view key) {
    HEARTH_ASSIGN(const bool there, copy(from, field, key));
    if (!there) return invalid(fmt::format("{} of the rope scaling is missing", in_quotes(field)));
    return {};
  }

  // It is in the scaling object or, in older models, at the top level.
  Result<std::uint64_t> original_context(const ConfigReader& from) {
    constexpr std::string_view kField = "original_max_position_embeddings";
    HEARTH_ASSIGN(const auto inner, from.integer(kField));
    HEARTH_ASSIGN(const auto outer, config_.integer(kField));
    const std::uint64_t length = inner ? *inner : outer.value_or(shape_.context_length);
    if (length == 0) return invalid(fmt::format("{} is 0", in_quotes(kField)));
    set("rope.scaling.original_context_length", length);
    return length;
  }

  Status scale_llama3(const ConfigReader& from) {
    HEARTH_TRY(copy_needed(from, "factor", "factor"));
    HEARTH_TRY(copy_needed(from, "low_freq_factor", "low_freq_factor"));
    HEARTH_TRY(copy_needed(from, "high_freq_factor", "high_freq_factor"));
    HEARTH_TRY(original_context(from));
    return {};
  }

  Status scale_yarn(const ConfigReader& from) {
    if (from.find("mscale") || from.find("mscale_all_dim"))
      return Error{ErrorKind::kUnsupported, "yarn with mscale is not supported"};
    HEARTH_ASSIGN(const auto truncate, from.boolean("truncate"));
    if (truncate) set("rope.scaling.yarn_truncate", *truncate);
    HEARTH_TRY(copy_needed(from, "factor", "factor"));
    HEARTH_TRY(copy(from, "beta_fast", "yarn_beta_fast"));
    HEARTH_TRY(copy(from, "beta_slow", "yarn_beta_slow"));
    HEARTH_TRY(original_context(from));
    HEARTH_ASSIGN(const auto factor, from.number("factor"));
    HEARTH_ASSIGN(const auto attention, from.number("attention_factor"));
    // GGUF's value multiplies the one computed from the factor; config.json's replaces it.
    if (attention)
      set("rope.scaling.attn_factor",
          *attention / (*factor > 1 ? 0.1 * std::log(*factor) + 1.0 : 1.0));
    return {};
  }

  Status scale_longrope(const ConfigReader& from) {
    HEARTH_ASSIGN(const std::uint64_t original, original_context(from));
    HEARTH_TRY(factors(from, "short_factor", "short_factors"));
    HEARTH_TRY(factors(from, "long_factor", "long_factors"));
    HEARTH_ASSIGN(const auto attention, from.number("attention_factor"));
    HEARTH_ASSIGN(const auto given, from.number("factor"));
    // The factor only matters for scaling attention; usually it follows from the lengths.
    const bool outer = config_.find("original_max_position_embeddings") != nullptr;
    const double factor = given && !outer ? *given
                                          : static_cast<double>(shape_.context_length) /
                                                static_cast<double>(original);
    set("rope.scaling.factor", factor);
    const double attention_factor =
        factor <= 1 || original == 1
            ? 1.0
            : std::sqrt(1.0 + std::log(factor) / std::log(static_cast<double>(original)));
    set("rope.scaling.attn_factor", attention.value_or(attention_factor));
    return {};
  }

  Status factors(const ConfigReader& from, std::string_view field, std::string_view key) {
    HEARTH_ASSIGN(auto values, from.numbers(field));
    if (!values || values->size() != dimensions_ / 2)
      return invalid(fmt::format("{} has {} numbers instead of {}", in_quotes(field),
                                 values ? values->size() : 0, dimensions_ / 2));
    for (const double value : *values)
      if (!(value > 0))
        return invalid(fmt::format("{} has a number that is not above 0", in_quotes(field)));
    set(fmt::format("rope.scaling.{}", key), std::move(*values));
    return {};
  }

  const ConfigReader& config_;
  const Family& family_;
  const RopeShape& shape_;
  Metadata& metadata_;
  std::uint64_t dimensions_ = 0;
};

}  // namespace

Status translate_rope(const ConfigReader& config, const Family& family, const RopeShape& shape,
                      Metadata& metadata) {
  return RopeTranslation(config, family, shape, metadata).run();
}

}  // namespace hearth::hugging_face
