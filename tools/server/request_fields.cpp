#include "tools/server/request_fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/near_words.h"
#include "tools/server/sampler_fields.h"

namespace hearth {
namespace {

using nlohmann::json;

constexpr std::string_view kSupported[] = {"model",
                                           "max_tokens",
                                           "max_completion_tokens",
                                           "temperature",
                                           "top_p",
                                           "top_k",
                                           "min_p",
                                           "presence_penalty",
                                           "frequency_penalty",
                                           "repetition_penalty",
                                           "logit_bias",
                                           "stop",
                                           "banned_strings",
                                           "compress",
                                           "n",
                                           "seed",
                                           "stream",
                                           "stream_options",
                                           "logprobs",
                                           "priority",
                                           "ignore_eos",
                                           "prediction",
                                           "use_beam_search",
                                           "beams",
                                           "num_beams",
                                           "length_penalty",
                                           "early_stopping",
                                           "cd_alpha",
                                           "cd_beta",
                                           "penalty_alpha",
                                           "guidance_scale",
                                           "negative_prompt",
                                           "user",
                                           "response_format",
                                           "structured_outputs",
                                           "grammar",
                                           "json_schema"};
constexpr std::string_view kChatOnly[] = {
    "messages", "top_logprobs", "tools", "tool_choice", "reasoning_effort", "chat_template_kwargs"};
constexpr std::string_view kCompletionOnly[] = {"prompt", "echo", "suffix"};

// Accepted with any value, because none of them changes the answer.
constexpr std::string_view kHarmless[] = {
    "metadata",         "service_tier",           "safety_identifier",
    "prompt_cache_key", "prompt_cache_retention", "parallel_tool_calls",
    "cache_prompt"};

// Fields of other servers, or of this API, that would change the answer and are not supported.
// `defaults` are the values, as a JSON list, that ask for nothing. Those that chats have are listed
// for /v1/completions.
struct UnsupportedField {
  std::string_view name, defaults = "[]";
};
constexpr UnsupportedField kUnsupported[] = {
    {"tools"},
    {"tool_choice", R"(["none","auto"])"},
    {"functions"},
    {"function_call", R"(["none","auto"])"},
    {"echo"},
    {"suffix"},
    {"best_of"},  // unless it is what `n` is, or the number of beams
    {"audio"},
    {"modalities", R"([["text"]])"},
    {"reasoning_effort", R"(["none"])"},
    {"reasoning"},
    {"verbosity", R"(["medium"])"},
    {"web_search_options"},
    {"store"},
    {"chat_template"},
    {"chat_template_kwargs"},
    {"documents"},
    {"add_generation_prompt", "[true]"},
    {"continue_final_message"},
    {"min_tokens", "[0]"},
    {"stop_token_ids"},
    {"bad_words"},
    {"allowed_token_ids"},
    {"include_stop_str_in_output"},
    {"skip_special_tokens", "[true]"},
    {"spaces_between_special_tokens", "[true]"},
    {"truncate_prompt_tokens"},
    {"prompt_logprobs"},
    {"n_probs", "[0]"},
    {"tfs_z", "[1]"},
};

// What other servers call a field of ours.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"n_predict", "max_tokens"},
    {"num_predict", "max_tokens"},
    {"max_new_tokens", "max_tokens"},
    {"stop_sequences", "stop"},
};

constexpr std::string_view kMessageFields[] = {"role",       "content",      "name",
                                               "tool_calls", "tool_call_id", "reasoning_content"};
// Left in a message by clients that send an earlier answer back as they got it.
constexpr std::string_view kHarmlessInMessages[] = {"refusal", "annotations", "reasoning"};
constexpr UnsupportedField kUnsupportedInMessages[] = {
    {"function_call"}, {"audio"}, {"prefix"}, {"partial"}};
constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool"};
constexpr std::string_view kPartFields[] = {"type", "text", "cache_control"};
constexpr std::string_view kStreamOptions[] = {"include_usage", "include_obfuscation"};

constexpr size_t kMostShown = 64;  // bytes of a client's word in a message

bool lists(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// Null, false, "", [] and {} ask for nothing.
bool is_empty_value(const json& value) {
  return value.is_null() || (value.is_boolean() && !value.get<bool>()) ||
         (value.is_string() && value.get_ref<const std::string&>().empty()) ||
         (value.is_structured() && value.empty());
}

bool asks_for_nothing(const UnsupportedField& field, const json& value) {
  const json defaults = json::parse(field.defaults);
  const auto is_default = [&](const json& one) {
    return std::ranges::find(defaults, one) != defaults.end();
  };
  // False asks for something if the default is true.
  if (value.is_boolean() && is_default(true)) return value.get<bool>();
  return is_empty_value(value) || is_default(value);
}

ApiError unsupported_field(const std::string& name) {
  return {.message = fmt::format("'{}' is not supported by this server", name),
          .param = name,
          .code = "unsupported_parameter"};
}

// vLLM's older names for structured_outputs.
ApiError guided_field(const std::string& name) {
  ApiError error = unsupported_field(name);
  for (const std::string_view part : {"json", "regex", "choice", "grammar"})
    if (name == fmt::format("guided_{}", part))
      error.message += fmt::format("; use 'structured_outputs.{}'", part);
  return error;
}

// `prefix` is where the field is: "messages[0].", for example.
ApiError unknown_field(const std::string& prefix, std::string_view name,
                       std::span<const std::string_view> known) {
  const std::vector<std::string> words(known.begin(), known.end());
  const std::vector<std::string> near = near_words(name, words, 1);
  const std::string param = prefix + std::string(name.substr(0, kMostShown));
  return {.message = fmt::format("'{}' is not a known field{}", param, did_you_mean(near)),
          .param = param,
          .code = "unknown_parameter"};
}

const UnsupportedField* find_unsupported(std::span<const UnsupportedField> fields,
                                         std::string_view name) {
  const auto place = std::ranges::find(fields, name, &UnsupportedField::name);
  return place == fields.end() ? nullptr : &*place;
}

// best_of picks the best of several answers, which is nothing new if all of them are wanted. With
// beam search it is the number of beams.
bool wants_best_of(const json& body, const json& best_of) {
  if (body.value("use_beam_search", json(false)) == true) return false;
  return best_of != 1 && best_of != body.value("n", json(1));
}

std::optional<ApiError> check_field(ApiKind kind, const json& body, const std::string& name,
                                    const json& value) {
  const bool chat = kind == ApiKind::kChat;
  const std::span<const std::string_view> chat_only(kChatOnly), completion_only(kCompletionOnly);
  const auto own = chat ? chat_only : completion_only, other = chat ? completion_only : chat_only;
  if (value.is_null() || lists(kSupported, name) || lists(kHarmless, name) || lists(own, name) ||
      is_sampler_field(name))
    return std::nullopt;
  if (name == "best_of" && !wants_best_of(body, value)) return std::nullopt;
  if (const UnsupportedField* field = find_unsupported(kUnsupported, name))
    return asks_for_nothing(*field, value) ? std::nullopt : std::optional(unsupported_field(name));
  if (name.starts_with("guided_"))
    return is_empty_value(value) ? std::nullopt : std::optional(guided_field(name));
  if (lists(other, name))
    return ApiError{.message = fmt::format("'{}' belongs to {}", name,
                                           chat ? "/v1/completions" : "/v1/chat/completions"),
                    .param = name,
                    .code = "unknown_parameter"};
  for (const auto& [theirs, ours] : kOtherNames)
    if (theirs == name)
      return ApiError{.message = fmt::format("'{}' is called '{}' here", name, ours),
                      .param = name,
                      .code = "unknown_parameter"};
  std::vector<std::string_view> known(own.begin(), own.end());
  known.insert(known.end(), std::begin(kSupported), std::end(kSupported));
  return unknown_field("", name, known);
}

std::optional<ApiError> check_parts(const std::string& name, const json& content) {
  for (size_t i = 0; i < content.size(); ++i) {
    const json& part = content[i];
    const std::string part_name = fmt::format("{}[{}]", name, i);
    if (!part.is_object() || !part.contains("type") || !part["type"].is_string())
      return ApiError{.message = fmt::format("'{}' must be an object with a type", part_name),
                      .param = part_name};
    const std::string type = part["type"].get<std::string>();
    if (type != "text")
      return ApiError{.message = fmt::format("'{}' is of type '{}'; only text is supported",
                                             part_name, type.substr(0, kMostShown)),
                      .param = part_name,
                      .code = "unsupported_content"};
    for (const auto& [field, value] : part.items())
      if (!value.is_null() && !lists(kPartFields, field))
        return unknown_field(part_name + ".", field, kPartFields);
  }
  return std::nullopt;
}

}  // namespace

std::optional<ApiError> check_fields(ApiKind kind, const json& body) {
  for (const auto& [name, value] : body.items())
    if (auto error = check_field(kind, body, name, value)) return error;
  const auto options = body.find("stream_options");
  if (options == body.end() || !options->is_object()) return std::nullopt;
  for (const auto& [name, value] : options->items())
    if (!is_empty_value(value) && !lists(kStreamOptions, name))
      return unknown_field("stream_options.", name, kStreamOptions);
  return std::nullopt;
}

std::optional<ApiError> check_message(size_t index, const json& message) {
  const std::string prefix = fmt::format("messages[{}].", index);
  const auto role = message.find("role");
  if (role == message.end() || !role->is_string())
    return ApiError{.message = fmt::format("'{}role' must be a string", prefix),
                    .param = prefix + "role"};
  if (const auto& name = role->get_ref<const std::string&>(); !lists(kRoles, name))
    return ApiError{.message = fmt::format("'{}role' is '{}'; supported are {}", prefix,
                                           name.substr(0, kMostShown), fmt::join(kRoles, ", ")),
                    .param = prefix + "role",
                    .code = "unsupported_role"};
  for (const auto& [name, value] : message.items()) {
    if (value.is_null() || lists(kMessageFields, name) || lists(kHarmlessInMessages, name))
      continue;
    const UnsupportedField* field = find_unsupported(kUnsupportedInMessages, name);
    if (field == nullptr) return unknown_field(prefix, name, kMessageFields);
    if (!asks_for_nothing(*field, value)) return unsupported_field(prefix + name);
  }
  const auto content = message.find("content");
  if (content == message.end() || !content->is_array()) return std::nullopt;
  return check_parts(prefix + "content", *content);
}

std::optional<ApiError> check_known(const json& body, std::span<const std::string_view> known) {
  for (const auto& [name, value] : body.items())
    if (!value.is_null() && !lists(known, name)) return unknown_field("", name, known);
  return std::nullopt;
}

}  // namespace hearth
