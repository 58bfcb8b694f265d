#include "engine/weights/quantize_mix.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace hearth {
namespace {

using enum WeightFormat;

constexpr std::array kTypes = {
    QuantizeType{"F32", kF32, 0},       QuantizeType{"F16", kF16, 1},
    QuantizeType{"BF16", kBf16, 32},    QuantizeType{"Q8_0", kQ8_0, 7},
    QuantizeType{"Q4_0", kQ4_0, 2},     QuantizeType{"Q4_1", kQ4_1, 3},
    QuantizeType{"Q5_0", kQ5_0, 8},     QuantizeType{"Q5_1", kQ5_1, 9},
    QuantizeType{"Q2_K", kQ2K, 10},     QuantizeType{"Q3_K_S", kQ3K, 11},
    QuantizeType{"Q3_K_M", kQ3K, 12},   QuantizeType{"Q3_K_L", kQ3K, 13},
    QuantizeType{"Q4_K_S", kQ4K, 14},   QuantizeType{"Q4_K_M", kQ4K, 15},
    QuantizeType{"Q5_K_S", kQ5K, 16},   QuantizeType{"Q5_K_M", kQ5K, 17},
    QuantizeType{"Q6_K", kQ6K, 18},     QuantizeType{"IQ4_NL", kIq4Nl, 25},
    QuantizeType{"IQ4_XS", kIq4Xs, 30},
};

constexpr std::string_view kWithoutLetter[] = {"Q3_K", "Q4_K", "Q5_K"};

// "blk.7.ffn_down.weight" is the ffn_down of layer 7; other tensors have no layer.
struct Place {
  std::string_view part;
  std::uint64_t layer = 0;
};
Place place_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.", kSuffix = ".weight";
  Place place{.part = name};
  if (place.part.ends_with(kSuffix)) place.part.remove_suffix(kSuffix.size());
  if (!name.starts_with(kPrefix)) return place;
  const std::size_t dot = name.find('.', kPrefix.size());
  if (dot == std::string_view::npos || dot + 1 > place.part.size()) return place;
  std::from_chars(name.data() + kPrefix.size(), name.data() + dot, place.layer);
  place.part = place.part.substr(dot + 1);
  return place;
}

// The first and last eighth of the layers, and every third one between: the layers where errors
// cost most.
bool gets_more_bits(std::uint64_t layer, std::uint64_t layers) {
  const std::uint64_t eighth = layers / 8;
  return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

WeightFormat value_format(const QuantizeType& type, const MixModel& model, std::uint64_t layer) {
  const bool shared = model.heads_per_kv_head >= 4;
  if (type.name == "Q2_K") return shared ? kQ4K : kQ3K;
  if (type.name == "Q3_K_M") return layer < 2 ? kQ5K : kQ4K;
  if (type.name == "Q3_K_L") return kQ5K;
  if (type.name == "Q4_K_S") return layer < 4 ? kQ5K : kQ4K;
  if (type.name == "Q4_K_M" || type.name == "Q5_K_M")
    return gets_more_bits(layer, model.layers) ? kQ6K : type.base;
  if (type.name == "IQ4_NL" || type.name == "IQ4_XS") return shared ? kQ5K : type.base;
  return type.base;
}

WeightFormat feed_forward_down_format(const QuantizeType& type, const MixModel& model,
                                      std::uint64_t layer) {
  if (type.name == "Q2_K") return kQ3K;
  if (type.name == "Q3_K_M") return layer < model.layers / 16 ? kQ5K : kQ4K;
  if (type.name == "Q3_K_L") return kQ5K;
  if (type.name == "Q4_K_M" || type.name == "Q5_K_M")
    return gets_more_bits(layer, model.layers) ? kQ6K : type.base;
  if (type.name == "Q4_K_S" || type.name == "IQ4_NL" || type.name == "IQ4_XS")
    return layer < model.layers / 8 ? kQ5K : type.base;
  return type.base;
}

WeightFormat attention_output_format(const QuantizeType& type) {
  if (type.name == "Q2_K") return kQ3K;
  if (type.name == "Q3_K_M") return kQ4K;
  if (type.name == "Q3_K_L") return kQ5K;
  return type.base;
}

WeightFormat fused_attention_format(const QuantizeType& type) {
  if (type.name == "Q3_K_M" || type.name == "Q3_K_L") return kQ4K;
  if (type.name == "Q4_K_M") return kQ5K;
  if (type.name == "Q5_K_M") return kQ6K;
  return type.base;
}

bool few_bits(const QuantizeType& type) {
  constexpr std::string_view kNames[] = {"Q2_K",   "Q3_K_S", "Q3_K_M", "Q4_K_S",
                                         "Q4_K_M", "IQ4_NL", "IQ4_XS"};
  return std::ranges::find(kNames, type.name) != std::end(kNames);
}

WeightFormat wanted_format(const QuantizeType& type, const MixModel& model,
                           const ModelTensor& tensor) {
  if (format_info(type.base).is_float()) return type.base;
  const Place place = place_of(tensor.name);
  if (place.part == "output" || (place.part == "token_embd" && !model.has_output)) {
    const bool whole_blocks = tensor.cols % format_info(type.base).block_weights == 0;
    return type.base == kQ8_0 || !whole_blocks ? kQ8_0 : kQ6K;
  }
  // Models with eight experts: the weights they share are few, so these get more bits.
  if (model.experts == 8 && (place.part == "attn_v" || place.part == "attn_k")) return kQ8_0;
  if (model.experts == 8 && place.part == "attn_output" && few_bits(type)) return kQ5K;
  if (place.part == "attn_v") return value_format(type, model, place.layer);
  if (place.part == "attn_qkv") return fused_attention_format(type);
  if (place.part == "attn_output") return attention_output_format(type);
  if (place.part == "ffn_down" || place.part == "ffn_down_exps")
    return feed_forward_down_format(type, model, place.layer);
  return type.base;
}

// A format with small blocks and similar quality, for rows that are not a multiple of the large
// blocks.
WeightFormat fitting_format(WeightFormat format, std::uint64_t cols) {
  const auto fits = [&](WeightFormat f) { return cols % format_info(f).block_weights == 0; };
  if (fits(format)) return format;
  WeightFormat small = kF16;
  if (format == kQ2K || format == kQ3K) small = kQ4_0;
  if (format == kIq4Xs) small = kIq4Nl;
  if (format == kQ4K) small = kQ5_0;
  if (format == kQ5K) small = kQ5_1;
  if (format == kQ6K) small = kQ8_0;
  return fits(small) ? small : kF16;
}

bool is_matrix_of_weights(const ModelTensor& tensor) {
  const std::string_view name = tensor.name;
  return tensor.rows > 1 && name.ends_with("weight") && !name.ends_with("_norm.weight") &&
         !name.ends_with("ffn_gate_inp.weight") && name != "position_embd.weight" &&
         name != "token_types.weight";
}

}  // namespace

std::optional<QuantizeType> find_quantize_type(std::string_view name) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  for (const std::string_view bare : kWithoutLetter)
    if (upper == bare) return find_quantize_type(upper + "_M");
  for (const QuantizeType& type : kTypes)
    if (type.name == upper) return type;
  return std::nullopt;
}

std::string quantize_type_names() {
  std::string names;
  for (const QuantizeType& type : kTypes) {
    if (!names.empty()) names += ", ";
    names += type.name;
  }
  return names;
}

WeightFormat mixed_format(const QuantizeType& type, const MixModel& model,
                          const ModelTensor& tensor) {
  if (!is_matrix_of_weights(tensor)) return tensor.format;
  return fitting_format(wanted_format(type, model, tensor), tensor.cols);
}

}  // namespace hearth
