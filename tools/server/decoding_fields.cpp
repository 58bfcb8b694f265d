#include "tools/server/decoding_fields.h"

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include <fmt/format.h>

#include "tools/server/openai_request.h"

namespace hearth {
namespace {

using nlohmann::json;

ApiError wrong_decoding(const std::string& name, const std::string& what) {
  return {.message = fmt::format("'{}' {}", name, what), .param = name};
}

const json* find_given(const json& body, const char* name) {
  const auto place = body.find(name);
  return place == body.end() || place->is_null() ? nullptr : &*place;
}

// Settings that beam search, which always takes the most probable texts, has no use for, with the
// value that asks for nothing.
struct Idle {
  const char* name;
  double nothing;
};
constexpr Idle kNotWithBeams[] = {
    {"temperature", 0},
    {"top_p", 1},
    {"top_k", 0},
    {"min_p", 0},
    {"typical_p", 1},
    {"typical", 1},
    {"top_n_sigma", 0},
    {"top_a", 0},
    {"epsilon_cutoff", 0},
    {"eta_cutoff", 0},
    {"xtc_probability", 0},
    {"dynatemp_range", 0},
    {"dynamic_temperature", 0},
    {"smoothing_factor", 0},
    {"mirostat", 0},
    {"mirostat_mode", 0},
    {"dry_multiplier", 0},
    {"repetition_penalty", 1},
    {"repeat_penalty", 1},
    {"presence_penalty", 0},
    {"frequency_penalty", 0},
};

bool asks_for_something(const json& value, const Idle& setting) {
  if (value.is_boolean()) return value.get<bool>();
  if (!value.is_number()) return true;
  const double given = value.get<double>();
  // Other servers switch these off with a negative number.
  const bool off = given < 0 && (setting.name == std::string_view("top_k") ||
                                 setting.name == std::string_view("top_n_sigma"));
  return given != setting.nothing && !off;
}

std::optional<ApiError> read_beams(const json& body, const ApiRequest& request, uint32_t& beams) {
  const json* use = find_given(body, "use_beam_search");
  if (use != nullptr && !use->is_boolean())
    return wrong_decoding("use_beam_search", "must be true or false");
  const char* given_as = nullptr;
  // `best_of` is the number of beams only if beam search is asked for.
  const bool uses = use != nullptr && use->get<bool>();
  for (const char* name : {"beams", "num_beams", "best_of"}) {
    const json* field = find_given(body, name);
    if (field == nullptr || (name == std::string_view("best_of") && !uses)) continue;
    if (!field->is_number_integer() || *field < 1 || *field > kMaxBeams)
      return wrong_decoding(name, fmt::format("must be an integer between 1 and {}", kMaxBeams));
    if (given_as != nullptr && beams != field->get<uint32_t>())
      return wrong_decoding(name, fmt::format("contradicts '{}'", given_as));
    beams = field->get<uint32_t>();
    given_as = name;
  }
  if (given_as == nullptr && uses) beams = request.n;
  if (uses && beams < 2)
    return wrong_decoding("use_beam_search", "needs 'beams', 'best_of' or 'n' to be at least 2");
  if (use != nullptr && !uses && beams > 1)
    return wrong_decoding("use_beam_search", fmt::format("contradicts '{}'", given_as));
  return std::nullopt;
}

std::optional<ApiError> read_early_stopping(const json& body, EarlyStopping& stopping) {
  const json* field = find_given(body, "early_stopping");
  if (field == nullptr) return std::nullopt;
  if (field->is_boolean())
    stopping = field->get<bool>() ? EarlyStopping::kOn : EarlyStopping::kOff;
  else if (*field == "never")
    stopping = EarlyStopping::kNever;
  else
    return wrong_decoding("early_stopping", "must be true, false or \"never\"");
  return std::nullopt;
}

std::optional<ApiError> read_length_penalty(const json& body, float& penalty) {
  const json* field = find_given(body, "length_penalty");
  if (field == nullptr) return std::nullopt;
  if (!field->is_number() || !(field->get<double>() >= -100 && field->get<double>() <= 100))
    return wrong_decoding("length_penalty", "must be a number between -100 and 100");
  penalty = field->get<float>();
  return std::nullopt;
}

std::optional<ApiError> read_contrast(const json& body, GenerationRequest& request) {
  const auto read = [&](const char* name, double high, std::optional<float>& value) {
    const json* field = find_given(body, name);
    if (field == nullptr) return true;
    if (!field->is_number() || !(field->get<double>() >= 0 && field->get<double>() <= high))
      return false;
    value = field->get<float>();
    return true;
  };
  if (!read("cd_alpha", 1, request.contrast_alpha))
    return wrong_decoding("cd_alpha", "must be a number between 0 and 1");
  if (!read("cd_beta", 100, request.contrast_beta))
    return wrong_decoding("cd_beta", "must be a number between 0 and 100");
  return std::nullopt;
}

// A scale of 1 asks for nothing, whatever the negative prompt is.
std::optional<ApiError> read_guidance(const json& body, ApiRequest& request) {
  if (const json* scale = find_given(body, "guidance_scale")) {
    if (!scale->is_number() || !(scale->get<double>() >= 0 && scale->get<double>() <= 100))
      return wrong_decoding("guidance_scale", "must be a number between 0 and 100");
    request.generation.guidance.scale = scale->get<float>();
  }
  if (const json* negative = find_given(body, "negative_prompt")) {
    if (!negative->is_string()) return wrong_decoding("negative_prompt", "must be a string");
    request.negative_prompt = negative->get<std::string>();
  }
  if (request.generation.guidance.guides() && request.generation.prompt_logprobs)
    return wrong_decoding("guidance_scale", "does not go together with 'echo' and 'logprobs'");
  return std::nullopt;
}

// The first of these settings that asks for something.
const Idle* find_not_idle(const json& body, std::span<const Idle> settings) {
  for (const Idle& setting : settings)
    if (const json* field = find_given(body, setting.name);
        field != nullptr && asks_for_something(*field, setting))
      return &setting;
  return nullptr;
}

// Contrastive search does not sample. Penalties go together with it.
constexpr Idle kNotWithContrastiveSearch[] = {
    {"temperature", 0},
    {"top_p", 1},
    {"min_p", 0},
    {"typical_p", 1},
    {"typical", 1},
    {"top_n_sigma", 0},
    {"top_a", 0},
    {"epsilon_cutoff", 0},
    {"eta_cutoff", 0},
    {"xtc_probability", 0},
    {"dynatemp_range", 0},
    {"dynamic_temperature", 0},
    {"smoothing_factor", 0},
    {"mirostat", 0},
    {"mirostat_mode", 0},
};

std::optional<ApiError> read_contrastive_search(const json& body, ApiRequest& request) {
  const json* alpha = find_given(body, "penalty_alpha");
  if (alpha == nullptr) return std::nullopt;
  if (!alpha->is_number() || !(alpha->get<double>() >= 0 && alpha->get<double>() <= 1))
    return wrong_decoding("penalty_alpha", "must be a number between 0 and 1");
  if (alpha->get<float>() == 0) return std::nullopt;
  GenerationRequest& generation = request.generation;
  const uint32_t top_k = find_given(body, "top_k") != nullptr ? generation.sampling.top_k : 0;
  if (top_k < 2 || top_k > kMaxTopLogprobs)
    return wrong_decoding("penalty_alpha",
                          fmt::format("needs 'top_k' between 2 and {}", kMaxTopLogprobs));
  if (const Idle* setting = find_not_idle(body, kNotWithContrastiveSearch))
    return wrong_decoding(setting->name, "does not go together with 'penalty_alpha'");
  if (!generation.banned_strings.empty())
    return wrong_decoding("banned_strings", "does not go together with 'penalty_alpha'");
  if (generation.prompt_logprobs || !generation.generate)
    return wrong_decoding("penalty_alpha", "does not go together with the prompt's 'logprobs'");
  if (generation.guidance.guides())
    return wrong_decoding("guidance_scale", "does not go together with 'penalty_alpha'");
  generation.contrastive_search = {.alpha = alpha->get<float>(), .top_k = top_k};
  return std::nullopt;
}

std::optional<ApiError> check_beams(const json& body, const ApiRequest& request) {
  const BeamOptions& beam = request.generation.beam;
  if (request.stream)
    return wrong_decoding("stream",
                          "must be false with beam search: its texts are known only at the end");
  if (request.generation.guidance.guides())
    return wrong_decoding("guidance_scale", "does not go together with beam search");
  if (request.generation.contrastive_search.searches())
    return wrong_decoding("penalty_alpha", "does not go together with beam search");
  if (request.n > beam.beams)
    return wrong_decoding("n", fmt::format("must not exceed 'beams', which is {}", beam.beams));
  if (const Idle* setting = find_not_idle(body, kNotWithBeams))
    return wrong_decoding(setting->name, "does not go together with beam search");
  return std::nullopt;
}

}  // namespace

std::optional<ApiError> read_decoding_fields(const json& body, ApiRequest& request) {
  if (auto error = read_contrast(body, request.generation)) return error;
  if (auto error = read_guidance(body, request)) return error;
  if (auto error = read_contrastive_search(body, request)) return error;
  BeamOptions& beam = request.generation.beam;
  if (auto error = read_beams(body, request, beam.beams)) return error;
  if (auto error = read_length_penalty(body, beam.length_penalty)) return error;
  if (auto error = read_early_stopping(body, beam.early_stopping)) return error;
  if (!beam.searches()) {
    if (beam.length_penalty != 1) return wrong_decoding("length_penalty", "needs 'beams'");
    if (beam.early_stopping != EarlyStopping::kOff)
      return wrong_decoding("early_stopping", "needs 'beams'");
    return std::nullopt;
  }
  if (auto error = check_beams(body, request)) return error;
  // The model's own settings for sampling do not apply.
  request.generation.sampling = {.temperature = 0,
                                 .seed = request.generation.sampling.seed,
                                 .top_logprobs = request.generation.sampling.top_logprobs};
  return std::nullopt;
}

}  // namespace hearth
