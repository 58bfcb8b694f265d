#include "tools/server/openai_request.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "engine/model/step_executor.h"

namespace hearth {
namespace {

using nlohmann::json;

constexpr uint32_t kMostCompletions = 64;  // of one prompt
constexpr size_t kMostChoices = 2048;      // of all
constexpr size_t kMostStops = 16;

// Reads fields of an object; remembers the first that is wrong.
class Fields {
 public:
  Fields(const json& object, std::optional<ApiError>& error) : object_(object), error_(error) {}

  const json* find(const char* name) const {
    const auto place = object_.find(name);
    return place == object_.end() || place->is_null() ? nullptr : &*place;
  }

  void number(const char* name, float& value, double low, double high) {
    const json* field = find(name);
    if (field == nullptr) return;
    if (!field->is_number()) return wrong(name, "must be a number");
    const double given = field->get<double>();
    if (!(given >= low && given <= high))
      return wrong(name, fmt::format("must be between {:g} and {:g}", low, high));
    value = static_cast<float>(given);
  }

  template <class T>
  bool integer(const char* name, T& value, int64_t low, int64_t high) {
    const json* field = find(name);
    if (field == nullptr) return false;
    const bool fits = field->is_number_integer() &&
                      (!field->is_number_unsigned() ||
                       field->get<uint64_t>() <= uint64_t(std::numeric_limits<int64_t>::max()));
    const int64_t given = fits ? field->get<int64_t>() : 0;
    if (!fits || given < low || given > high) {
      wrong(name, fmt::format("must be an integer between {} and {}", low, high));
      return false;
    }
    value = static_cast<T>(given);
    return true;
  }

  void boolean(const char* name, bool& value) {
    const json* field = find(name);
    if (field == nullptr) return;
    if (!field->is_boolean()) return wrong(name, "must be true or false");
    value = field->get<bool>();
  }

  void text(const char* name, std::string& value) {
    const json* field = find(name);
    if (field == nullptr) return;
    if (!field->is_string()) return wrong(name, "must be a string");
    value = field->get<std::string>();
  }

  void wrong(const std::string& name, const std::string& what) {
    if (!error_) error_ = ApiError{.message = fmt::format("'{}' {}", name, what), .param = name};
  }

 private:
  const json& object_;
  std::optional<ApiError>& error_;
};

void read_stop(Fields& fields, std::vector<std::string>& stop) {
  const json* field = fields.find("stop");
  if (field == nullptr) return;
  if (field->is_string()) {
    stop.push_back(field->get<std::string>());
    return;
  }
  if (!field->is_array() || field->size() > kMostStops)
    return fields.wrong("stop", fmt::format("must be a string or a list of up to {}", kMostStops));
  for (const json& item : *field) {
    if (!item.is_string()) return fields.wrong("stop", "must hold strings");
    stop.push_back(item.get<std::string>());
  }
}

void read_logit_bias(Fields& fields, uint32_t vocabulary, std::vector<params::TokenBias>& biases) {
  const json* field = fields.find("logit_bias");
  if (field == nullptr) return;
  if (!field->is_object() || field->size() > StepExecutor::kMaxBiases)
    return fields.wrong("logit_bias", fmt::format("must be an object of up to {} token ids",
                                                  StepExecutor::kMaxBiases));
  for (const auto& [key, value] : field->items()) {
    uint32_t token = 0;
    const auto [end, failed] = std::from_chars(key.data(), key.data() + key.size(), token);
    if (failed != std::errc() || end != key.data() + key.size() || token >= vocabulary)
      return fields.wrong("logit_bias", fmt::format("has '{}', which is no token id", key));
    if (!value.is_number() || std::abs(value.get<double>()) > 100)
      return fields.wrong("logit_bias", "must have values between -100 and 100");
    biases.push_back({.token = token, .bias = value.get<float>()});
  }
}

void read_sampling(Fields& fields, ApiRequest& request) {
  SamplingOptions& sampling = request.generation.sampling;
  fields.number("temperature", sampling.temperature, 0, 100);
  fields.number("top_p", sampling.top_p, 0, 1);
  fields.number("min_p", sampling.min_p, 0, 1);
  fields.number("presence_penalty", sampling.presence_penalty, -2, 2);
  fields.number("frequency_penalty", sampling.frequency_penalty, -2, 2);
  fields.number("repetition_penalty", sampling.repetition_penalty, 0.01, 100);
  fields.integer("top_k", sampling.top_k, 0, std::numeric_limits<int32_t>::max());
  int64_t seed = 0;
  request.has_seed = fields.integer("seed", seed, std::numeric_limits<int64_t>::min(),
                                    std::numeric_limits<int64_t>::max());
  sampling.seed = static_cast<uint64_t>(seed);
}

// The text of a message: a string, or a list of text parts. An answer may have none: one that calls
// a function, say.
bool read_content(const json& message, std::string_view role, std::string& text) {
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) return role == "assistant";
  if (content->is_string()) {
    text = content->get<std::string>();
    return true;
  }
  if (!content->is_array()) return false;
  for (const json& part : *content) {
    if (!part.is_object() || part.value("type", json()) != "text" || !part.contains("text") ||
        !part["text"].is_string())
      return false;
    text += part["text"].get<std::string>();
  }
  return true;
}

void read_messages(Fields& fields, std::vector<ChatMessage>& messages) {
  const json* field = fields.find("messages");
  if (field == nullptr || !field->is_array() || field->empty())
    return fields.wrong("messages", "must be a list of at least one message");
  for (size_t i = 0; i < field->size(); ++i) {
    const json& message = (*field)[i];
    const std::string name = fmt::format("messages[{}]", i);
    if (!message.is_object()) return fields.wrong(name, "must be an object");
    const auto role = message.find("role");
    if (role == message.end() || !role->is_string())
      return fields.wrong(name + ".role", "must be a string");
    ChatMessage read{.role = role->get<std::string>(), .content = {}};
    if (read.role == "developer") read.role = "system";
    if (!read_content(message, read.role, read.content))
      return fields.wrong(name + ".content", "must be a string or a list of text parts");
    messages.push_back(std::move(read));
  }
}

void read_ids(Fields& fields, const char* name, const json& list, uint32_t vocabulary,
              std::vector<uint32_t>& ids) {
  for (const json& id : list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= vocabulary)
      return fields.wrong(name, fmt::format("must hold token ids below {}", vocabulary));
    ids.push_back(id.get<uint32_t>());
  }
}

// One text, one list of ids, or a list of either.
void read_prompts(Fields& fields, uint32_t vocabulary, std::vector<ApiRequest::Prompt>& prompts) {
  constexpr const char* kForms = "must be a string, a list of token ids, or a list of either";
  const json* field = fields.find("prompt");
  if (field != nullptr && field->is_string()) {
    prompts.emplace_back(field->get<std::string>());
    return;
  }
  if (field == nullptr || !field->is_array() || field->empty())
    return fields.wrong("prompt", kForms);
  const auto add_ids = [&](const json& list) {
    std::vector<uint32_t> ids;
    read_ids(fields, "prompt", list, vocabulary, ids);
    prompts.emplace_back(std::move(ids));
  };
  if (field->front().is_number()) return add_ids(*field);
  const bool texts = field->front().is_string();
  for (const json& item : *field) {
    if (texts ? !item.is_string() : !item.is_array() || item.empty())
      return fields.wrong("prompt", kForms);
    if (texts)
      prompts.emplace_back(item.get<std::string>());
    else
      add_ids(item);
  }
}

void read_logprobs(Fields& fields, ApiKind kind, ApiRequest& request) {
  uint32_t& top = request.generation.sampling.top_logprobs;
  if (kind == ApiKind::kCompletion) {
    request.logprobs = fields.integer("logprobs", top, 0, params::kMaxTopLogprobs);
    return;
  }
  fields.boolean("logprobs", request.logprobs);
  const bool given = fields.integer("top_logprobs", top, 0, params::kMaxTopLogprobs);
  if (given && top > 0 && !request.logprobs)
    fields.wrong("top_logprobs", "needs 'logprobs' to be true");
}

void read_all(Fields& fields, ApiKind kind, uint32_t vocabulary, ApiRequest& request) {
  GenerationRequest& generation = request.generation;
  fields.text("model", request.model);
  if (kind == ApiKind::kChat)
    read_messages(fields, request.messages);
  else
    read_prompts(fields, vocabulary, request.prompts);
  // More than a sequence can have is cut to what it can.
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const char* name : {"max_tokens", "max_completion_tokens"})
    if (int64_t tokens = 0; fields.integer(name, tokens, 1, kMost))
      generation.max_tokens =
          static_cast<uint32_t>(std::min<int64_t>(tokens, std::numeric_limits<int32_t>::max()));
  read_sampling(fields, request);
  read_logit_bias(fields, vocabulary, generation.biases);
  read_stop(fields, generation.stop);
  read_logprobs(fields, kind, request);
  fields.integer("n", request.n, 1, kMostCompletions);
  if (request.prompts.size() * request.n > kMostChoices)
    fields.wrong("prompt",
                 fmt::format("must, times 'n', ask for at most {} completions", kMostChoices));
  fields.integer("priority", generation.priority, -1000, 1000);
  fields.boolean("ignore_eos", generation.ignore_end);
  fields.boolean("stream", request.stream);
  std::string user;
  fields.text("user", user);
  if (const json* options = fields.find("stream_options")) {
    if (!options->is_object()) return fields.wrong("stream_options", "must be an object");
    const auto usage = options->find("include_usage");
    const bool given = usage != options->end() && !usage->is_null();
    if (given && !usage->is_boolean())
      return fields.wrong("stream_options.include_usage", "must be true or false");
    request.include_usage = given && usage->get<bool>();
  }
}

// Deep nesting would overflow the parser's stack; no field needs more than a few levels.
bool nests_too_deep(std::string_view body) {
  constexpr int kMostLevels = 64;
  int level = 0;
  bool in_string = false;
  for (size_t i = 0; i < body.size(); ++i) {
    const char c = body[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++level > kMostLevels) return true;
    } else if (c == '}' || c == ']') {
      --level;
    }
  }
  return false;
}

std::variant<json, ApiError> parse_object(std::string_view body) {
  if (nests_too_deep(body)) return ApiError{.message = "the body is nested too deeply"};
  json object = json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded()) return ApiError{.message = "the body is not valid JSON"};
  if (!object.is_object()) return ApiError{.message = "the body must be a JSON object"};
  return object;
}

// Parses a body and has `read` fill a T from its fields.
template <class T, class Read>
std::variant<T, ApiError> parse_fields(std::string_view body, Read read) {
  const auto object = parse_object(body);
  if (const ApiError* error = std::get_if<ApiError>(&object)) return *error;
  std::optional<ApiError> error;
  T request{};
  Fields fields(std::get<json>(object), error);
  read(fields, request);
  if (error) return *error;
  return request;
}

}  // namespace

std::variant<ApiRequest, ApiError> parse_api_request(ApiKind kind, std::string_view body,
                                                     uint32_t vocabulary) {
  return parse_fields<ApiRequest>(body, [&](Fields& fields, ApiRequest& request) {
    read_all(fields, kind, vocabulary, request);
  });
}

std::variant<TokenizeRequest, ApiError> parse_tokenize_request(std::string_view body) {
  return parse_fields<TokenizeRequest>(body, [](Fields& fields, TokenizeRequest& request) {
    if (fields.find("content") == nullptr) fields.wrong("content", "must be a string");
    fields.text("content", request.content);
    fields.boolean("add_special", request.add_special);
    fields.boolean("parse_special", request.parse_special);
  });
}

std::variant<std::vector<uint32_t>, ApiError> parse_detokenize_request(std::string_view body,
                                                                       uint32_t vocabulary) {
  using Ids = std::vector<uint32_t>;
  return parse_fields<Ids>(body, [&](Fields& fields, Ids& ids) {
    const json* field = fields.find("tokens");
    if (field == nullptr || !field->is_array())
      return fields.wrong("tokens", "must be a list of token ids");
    read_ids(fields, "tokens", *field, vocabulary, ids);
  });
}

}  // namespace hearth
