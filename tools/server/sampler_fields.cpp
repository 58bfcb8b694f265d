#include "tools/server/sampler_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace hearth {
namespace {

using nlohmann::json;

constexpr double kCutoffUnit = 1e-4;  // of epsilon_cutoff and eta_cutoff in text-generation-webui
constexpr size_t kMostBreakerBytes = 128;
constexpr float kRangeRounding = 1e-3f;  // by clients that compute one range from the other

struct SamplerNumber {
  std::string_view name;
  float SamplingOptions::*value;
  double low, high, unit = 1;
};
constexpr SamplerNumber kSamplerNumbers[] = {
    {"typical_p", &SamplingOptions::typical_p, 0, 1},
    {"typical", &SamplingOptions::typical_p, 0, 1},
    {"top_n_sigma", &SamplingOptions::top_n_sigma, -1, 1000},
    {"top_a", &SamplingOptions::top_a, 0, 1},
    {"epsilon_cutoff", &SamplingOptions::epsilon_cutoff, 0, 10000, kCutoffUnit},
    {"eta_cutoff", &SamplingOptions::eta_cutoff, 0, 10000, kCutoffUnit},
    {"xtc_probability", &SamplingOptions::xtc_probability, 0, 1},
    {"xtc_threshold", &SamplingOptions::xtc_threshold, 0, 1},
    {"dynatemp_range", &SamplingOptions::dynatemp_range, 0, 100},
    {"dynatemp_exponent", &SamplingOptions::dynatemp_exponent, 0.01, 100},
    {"smoothing_factor", &SamplingOptions::smoothing_factor, 0, 100},
    {"smoothing_curve", &SamplingOptions::smoothing_curve, 1, 3},
    {"mirostat_tau", &SamplingOptions::mirostat_tau, 0, 100},
    {"mirostat_eta", &SamplingOptions::mirostat_eta, 0, 10},
    {"dry_multiplier", &SamplingOptions::dry_multiplier, 0, 100},
    {"dry_base", &SamplingOptions::dry_base, 1, 100},
    {"repeat_penalty", &SamplingOptions::repetition_penalty, 0.01, 100},
};
constexpr std::string_view kOtherSamplerFields[] = {
    "mirostat",      "mirostat_mode",      "dry_allowed_length",    "dry_penalty_last_n",
    "samplers",      "sampler_priority",   "dry_sequence_breakers", "dynatemp_low",
    "dynatemp_high", "dynamic_temperature"};
// Two names that clients have for the same number.
constexpr std::pair<std::string_view, std::string_view> kSameNumbers[] = {
    {"typical_p", "typical"},
    {"mirostat", "mirostat_mode"},
    {"repetition_penalty", "repeat_penalty"}};

ApiError wrong_sampler_field(std::string_view name, std::string_view what) {
  return {.message = fmt::format("'{}' {}", name, what), .param = std::string(name)};
}

const json* find_field(const json& body, std::string_view name) {
  const auto place = body.find(name);
  return place == body.end() || place->is_null() ? nullptr : &*place;
}

std::optional<ApiError> read_number(const json& field, std::string_view name, double low,
                                    double high, double& value) {
  if (!field.is_number()) return wrong_sampler_field(name, "must be a number");
  const double given = field.get<double>();
  if (!(given >= low && given <= high))
    return wrong_sampler_field(name, fmt::format("must be between {:g} and {:g}", low, high));
  value = given;
  return std::nullopt;
}

std::optional<ApiError> read_whole(const json& body, std::string_view name, int64_t low,
                                   int64_t high, int64_t& value) {
  const json* field = find_field(body, name);
  if (field == nullptr) return std::nullopt;
  const bool fits = field->is_number_integer() &&
                    (!field->is_number_unsigned() ||
                     field->get<uint64_t>() <= uint64_t(std::numeric_limits<int64_t>::max()));
  if (!fits || field->get<int64_t>() < low || field->get<int64_t>() > high)
    return wrong_sampler_field(name,
                               fmt::format("must be an integer between {} and {}", low, high));
  value = field->get<int64_t>();
  return std::nullopt;
}

// A list of strings, or one string with `separators` between them.
std::optional<ApiError> read_names(const json& field, std::string_view name,
                                   std::string_view separators, std::vector<std::string>& names) {
  if (field.is_string()) {
    const auto& text = field.get_ref<const std::string&>();
    for (size_t from = 0; from <= text.size();) {
      const size_t end = std::min(text.find_first_of(separators, from), text.size());
      if (end > from) names.push_back(text.substr(from, end - from));
      from = end + 1;
    }
    return std::nullopt;
  }
  const bool strings = field.is_array() && std::ranges::all_of(field, [](const json& item) {
                         return item.is_string();
                       });
  if (!strings) return wrong_sampler_field(name, "must be a list of strings");
  names = field.get<std::vector<std::string>>();
  return std::nullopt;
}

ApiError contradiction(std::string_view name, std::string_view other) {
  return wrong_sampler_field(name, fmt::format("contradicts '{}'", other));
}

// Both names of a number may be given if they agree.
std::optional<ApiError> check_same_numbers(const json& body) {
  for (const auto& [first, second] : kSameNumbers) {
    const json *one = find_field(body, first), *other = find_field(body, second);
    if (one != nullptr && other != nullptr && *one != *other) return contradiction(second, first);
  }
  return std::nullopt;
}

std::optional<ApiError> read_order(const json& body, SamplerOrder& order) {
  std::string_view given_as;
  for (const char* name : {"samplers", "sampler_priority"}) {
    const json* field = find_field(body, name);
    if (field == nullptr || (field->is_structured() && field->empty())) continue;
    std::vector<std::string> names;
    if (auto error = read_names(*field, name, ";,\n ", names)) return error;
    const auto parsed = parse_sampler_order(names);
    if (!parsed.ok()) return wrong_sampler_field(name, "is wrong: " + parsed.error().message);
    if (!given_as.empty() && order != *parsed) return contradiction(name, given_as);
    order = *parsed;
    given_as = name;
  }
  return std::nullopt;
}

// A list, as llama.cpp has it, or the text of one, as text-generation-webui has it.
std::optional<ApiError> read_breakers(const json& body, std::vector<std::string>& breakers) {
  constexpr std::string_view kName = "dry_sequence_breakers";
  const json* field = find_field(body, kName);
  if (field == nullptr) return std::nullopt;
  json parsed;
  if (field->is_string()) {
    const auto& text = field->get_ref<const std::string&>();
    parsed = json::parse(text.starts_with('[') ? text : "[" + text + "]", nullptr, false);
    if (parsed.is_discarded()) return wrong_sampler_field(kName, "must be a list of strings");
    field = &parsed;
  }
  std::vector<std::string> given;
  if (auto error = read_names(*field, kName, "", given)) return error;
  const bool small = std::ranges::all_of(
      given, [](const std::string& each) { return each.size() <= kMostBreakerBytes; });
  if (given.size() > kMaxDryBreakers || !small)
    return wrong_sampler_field(
        kName, fmt::format("must hold at most {} strings of at most {} bytes", kMaxDryBreakers,
                           kMostBreakerBytes));
  breakers = std::move(given);
  return std::nullopt;
}

// text-generation-webui gives the lowest and the highest temperature instead of a middle and a
// range, which count if `dynamic_temperature` is true. Clients of several servers send both forms,
// which have to agree.
std::optional<ApiError> read_temperature_range(const json& body, SamplingOptions& sampling) {
  const json* const dynamic_field = find_field(body, "dynamic_temperature");
  if (dynamic_field != nullptr && !dynamic_field->is_boolean())
    return wrong_sampler_field("dynamic_temperature", "must be true or false");
  const bool dynamic = dynamic_field != nullptr && dynamic_field->get<bool>();
  double low = 1, high = 1;
  bool has_ends = false;
  for (const auto& [name, value] : {std::pair{"dynatemp_low", &low}, {"dynatemp_high", &high}})
    if (const json* field = find_field(body, name)) {
      if (auto error = read_number(*field, name, 0, 100, *value)) return error;
      has_ends = true;
    }
  if (dynamic && low > high)
    return wrong_sampler_field("dynatemp_low", "must not be above 'dynatemp_high'");
  const float range = dynamic ? static_cast<float>((high - low) / 2) : 0.0f;
  const bool has_range = find_field(body, "dynatemp_range") != nullptr;
  if (has_range && (has_ends || !dynamic) && dynamic_field != nullptr &&
      std::abs(sampling.dynatemp_range - range) > kRangeRounding)
    return contradiction("dynamic_temperature", "dynatemp_range");
  if (!dynamic || (has_range && !has_ends)) return std::nullopt;
  sampling.temperature = static_cast<float>((low + high) / 2);
  sampling.dynatemp_range = range;
  return std::nullopt;
}

}  // namespace

bool is_sampler_field(std::string_view name) {
  return std::ranges::find(kSamplerNumbers, name, &SamplerNumber::name) !=
             std::end(kSamplerNumbers) ||
         std::ranges::find(kOtherSamplerFields, name) != std::end(kOtherSamplerFields);
}

std::optional<ApiError> read_sampler_fields(const json& body, GenerationRequest& generation) {
  SamplingOptions& sampling = generation.sampling;
  for (const SamplerNumber& number : kSamplerNumbers) {
    const json* field = find_field(body, number.name);
    if (field == nullptr) continue;
    double value = 0;
    if (auto error = read_number(*field, number.name, number.low, number.high, value)) return error;
    sampling.*number.value = static_cast<float>(value * number.unit);
  }
  for (const char* name : {"mirostat", "mirostat_mode"}) {
    int64_t mirostat = sampling.mirostat;
    if (auto error = read_whole(body, name, 0, 2, mirostat)) return error;
    if (mirostat == 1)
      return wrong_sampler_field(name, "must be 0 or 2: version 1 is not supported");
    sampling.mirostat = static_cast<uint32_t>(mirostat);
  }
  if (auto error = check_same_numbers(body)) return error;
  int64_t allowed = sampling.dry_allowed_length, last = sampling.dry_penalty_last_n;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (auto error = read_whole(body, "dry_allowed_length", 1, kMost, allowed)) return error;
  if (auto error = read_whole(body, "dry_penalty_last_n", -1, kMost, last)) return error;
  sampling.dry_allowed_length = static_cast<uint32_t>(allowed);
  sampling.dry_penalty_last_n = static_cast<int32_t>(last);
  if (auto error = read_temperature_range(body, sampling)) return error;
  if (auto error = read_order(body, sampling.order)) return error;
  return read_breakers(body, generation.dry_breakers);
}

std::optional<ApiError> read_logit_bias(const json& field, uint32_t vocabulary,
                                        const EncodeText& encode, std::vector<LogitBias>& biases) {
  const auto wrong = [](std::string_view what) { return wrong_sampler_field("logit_bias", what); };
  const auto add = [&](uint32_t token, float bias) {
    const auto place = std::ranges::find(biases, token, &LogitBias::token);
    if (place == biases.end())
      biases.push_back({.token = token, .bias = bias});
    else
      place->bias += bias;
  };
  // A key of an object is a token id if all of it is a number.
  const auto add_entry = [&](const json& key, const json& value) -> std::optional<ApiError> {
    float bias = -std::numeric_limits<float>::infinity();
    const bool bans = value.is_boolean() && !value.get<bool>();
    if (!bans && (!value.is_number() || std::abs(value.get<double>()) > 100))
      return wrong("must have values between -100 and 100, or false");
    if (!bans) bias = value.get<float>();
    if (key.is_number()) {
      if (!key.is_number_unsigned() || key.get<uint64_t>() >= vocabulary)
        return wrong(fmt::format("has {}, which is not a token id", key.dump()));
      add(key.get<uint32_t>(), bias);
      return std::nullopt;
    }
    if (!key.is_string()) return wrong("must have token ids or texts");
    const auto& text = key.get_ref<const std::string&>();
    uint32_t token = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), token);
    const bool numeric = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    const bool is_id = numeric && failed == std::errc() && token < vocabulary;
    if (is_id && field.is_object()) {
      add(token, bias);
      return std::nullopt;
    }
    const std::vector<uint32_t> tokens =
        encode && !(numeric && field.is_object()) ? encode(text) : std::vector<uint32_t>();
    if (tokens.empty())
      return wrong(fmt::format("has '{}', which is neither a token id nor a text with tokens",
                               text.substr(0, 32)));
    for (const uint32_t each : tokens) add(each, bias);
    return std::nullopt;
  };
  if (field.is_object()) {
    for (const auto& [key, value] : field.items())
      if (auto error = add_entry(key, value)) return error;
  } else if (field.is_array()) {
    for (const json& pair : field) {
      if (!pair.is_array() || pair.size() != 2)
        return wrong("must be an object, or a list of pairs of a token and a bias");
      if (auto error = add_entry(pair[0], pair[1])) return error;
    }
  } else {
    return wrong("must be an object, or a list of pairs of a token and a bias");
  }
  if (biases.size() > kMaxLogitBiases)
    return wrong(fmt::format("must be for at most {} tokens", kMaxLogitBiases));
  return std::nullopt;
}

}  // namespace hearth
