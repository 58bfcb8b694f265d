#include "tools/server/openai_request.h"

#include <limits>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "tools/server/json_body.h"
#include "tools/server/sampler_fields.h"

namespace hearth {
namespace {

using nlohmann::json;

constexpr uint32_t kMostCompletions = 64;  // of one prompt
constexpr size_t kMostChoices = 2048;      // of all
constexpr size_t kMostStops = 16;

// Reads the fields of an object, and keeps the first error.
class BodyFields {
 public:
  BodyFields(const json& object, std::optional<ApiError>& error) : object_(object), error_(error) {}

  const json& body() const { return object_; }

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
    fail({.message = fmt::format("'{}' {}", name, what), .param = name});
  }
  void fail(ApiError error) {
    if (!error_) error_ = std::move(error);
  }

 private:
  const json& object_;
  std::optional<ApiError>& error_;
};

void read_stop(BodyFields& fields, std::vector<std::string>& stop) {
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

void read_sampling(BodyFields& fields, ApiRequest& request) {
  SamplingOptions& sampling = request.generation.sampling;
  fields.number("temperature", sampling.temperature, 0, 100);
  fields.number("top_p", sampling.top_p, 0, 1);
  fields.number("min_p", sampling.min_p, 0, 1);
  fields.number("presence_penalty", sampling.presence_penalty, -2, 2);
  fields.number("frequency_penalty", sampling.frequency_penalty, -2, 2);
  fields.number("repetition_penalty", sampling.repetition_penalty, 0.01, 100);
  // Other servers switch top-k off with -1.
  if (int64_t top_k = 0; fields.integer("top_k", top_k, -1, std::numeric_limits<int32_t>::max()))
    sampling.top_k = static_cast<uint32_t>(std::max<int64_t>(top_k, 0));
  int64_t seed = 0;
  request.has_seed = fields.integer("seed", seed, std::numeric_limits<int64_t>::min(),
                                    std::numeric_limits<int64_t>::max());
  sampling.seed = static_cast<uint64_t>(seed);
  if (auto error = read_sampler_fields(fields.body(), request.generation))
    fields.fail(std::move(*error));
}

// The text of a message: a string, or a list of text parts. Only an assistant's message may have
// none. False: it is something else.
bool read_content(const json& message, std::string_view role, std::string& text) {
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) return role == "assistant";
  if (content->is_string()) {
    text = content->get<std::string>();
    return true;
  }
  if (!content->is_array()) return false;
  for (const json& part : *content) {
    const auto piece = part.find("text");
    if (piece == part.end() || !piece->is_string()) return false;
    text += piece->get_ref<const std::string&>();
  }
  return true;
}

void read_messages(BodyFields& fields, std::vector<ChatMessage>& messages) {
  const json* field = fields.find("messages");
  if (field == nullptr || !field->is_array() || field->empty())
    return fields.wrong("messages", "must be a list of at least one message");
  for (size_t i = 0; i < field->size(); ++i) {
    const json& message = (*field)[i];
    const std::string name = fmt::format("messages[{}]", i);
    if (!message.is_object()) return fields.wrong(name, "must be an object");
    if (auto error = check_message(i, message)) return fields.fail(std::move(*error));
    ChatMessage read{.role = message["role"].get<std::string>(), .content = {}};
    if (read.role == "developer") read.role = "system";
    if (!read_content(message, read.role, read.content))
      return fields.wrong(name + ".content", "must be a string or a list of text parts");
    messages.push_back(std::move(read));
  }
}

void read_ids(BodyFields& fields, const char* name, const json& list, uint32_t vocabulary,
              std::vector<uint32_t>& ids) {
  for (const json& id : list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= vocabulary)
      return fields.wrong(name, fmt::format("must hold token ids below {}", vocabulary));
    ids.push_back(id.get<uint32_t>());
  }
}

// One text, one list of ids, or a list of either.
void read_prompts(BodyFields& fields, uint32_t vocabulary,
                  std::vector<ApiRequest::Prompt>& prompts) {
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

void read_logprobs(BodyFields& fields, ApiKind kind, ApiRequest& request) {
  uint32_t& top = request.generation.sampling.top_logprobs;
  if (kind == ApiKind::kCompletion) {
    request.logprobs = fields.integer("logprobs", top, 0, kMaxTopLogprobs);
    return;
  }
  fields.boolean("logprobs", request.logprobs);
  const bool given = fields.integer("top_logprobs", top, 0, kMaxTopLogprobs);
  if (given && top > 0 && !request.logprobs)
    fields.wrong("top_logprobs", "needs 'logprobs' to be true");
}

void read_body_fields(BodyFields& fields, ApiKind kind, const ApiContext& context,
                      ApiRequest& request) {
  GenerationRequest& generation = request.generation;
  fields.text("model", request.model);
  if (kind == ApiKind::kChat)
    read_messages(fields, request.messages);
  else
    read_prompts(fields, context.vocabulary, request.prompts);
  // The engine cuts a limit beyond the context to what fits.
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const char* name : {"max_tokens", "max_completion_tokens"})
    if (int64_t tokens = 0; fields.integer(name, tokens, 1, kMost))
      generation.max_tokens =
          static_cast<uint32_t>(std::min<int64_t>(tokens, std::numeric_limits<int32_t>::max()));
  read_sampling(fields, request);
  if (const json* biases = fields.find("logit_bias"))
    if (auto error =
            read_logit_bias(*biases, context.vocabulary, context.encode, generation.biases))
      fields.fail(std::move(*error));
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

// Parses a body, lets `check` look at which fields it has and `read` fill `request` from them.
template <class T, class Check, class Read>
std::variant<T, ApiError> parse_fields(std::string_view body, T request, Check check, Read read) {
  const auto object = parse_json_body(body);
  if (const ApiError* error = std::get_if<ApiError>(&object)) return *error;
  std::optional<ApiError> error = check(std::get<json>(object));
  if (error) return *error;
  BodyFields fields(std::get<json>(object), error);
  read(fields, request);
  if (error) return *error;
  return request;
}

}  // namespace

std::variant<ApiRequest, ApiError> parse_api_request(ApiKind kind, std::string_view body,
                                                     const ApiContext& context) {
  ApiRequest request;
  request.generation.sampling = context.sampling;
  return parse_fields(
      body, std::move(request), [&](const json& object) { return check_fields(kind, object); },
      [&](BodyFields& fields, ApiRequest& read) { read_body_fields(fields, kind, context, read); });
}

std::variant<TokenizeRequest, ApiError> parse_tokenize_request(std::string_view body) {
  constexpr std::string_view kKnown[] = {"content", "add_special", "parse_special", "model"};
  return parse_fields(
      body, TokenizeRequest{}, [&](const json& object) { return check_known(object, kKnown); },
      [](BodyFields& fields, TokenizeRequest& request) {
        if (fields.find("content") == nullptr) fields.wrong("content", "must be a string");
        fields.text("content", request.content);
        fields.boolean("add_special", request.add_special);
        fields.boolean("parse_special", request.parse_special);
      });
}

std::variant<std::vector<uint32_t>, ApiError> parse_detokenize_request(std::string_view body,
                                                                       uint32_t vocabulary) {
  constexpr std::string_view kKnown[] = {"tokens", "model"};
  return parse_fields(
      body, std::vector<uint32_t>{},
      [&](const json& object) { return check_known(object, kKnown); },
      [&](BodyFields& fields, std::vector<uint32_t>& ids) {
        const json* field = fields.find("tokens");
        if (field == nullptr || !field->is_array())
          return fields.wrong("tokens", "must be a list of token ids");
        read_ids(fields, "tokens", *field, vocabulary, ids);
      });
}

}  // namespace hearth
