#include "tools/server/openai_request.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "tools/server/decoding_fields.h"
#include "tools/server/json_body.h"
#include "tools/server/prediction.h"
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
  // `prefix` comes before names in errors: "compress.", for example.
  BodyFields(const json& object, std::optional<ApiError>& error, std::string prefix = {})
      : object_(object), error_(error), prefix_(std::move(prefix)) {}

  const json& object() const { return object_; }
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
      const bool any = low == std::numeric_limits<int64_t>::min();
      wrong(name, any ? "must be an integer"
                      : fmt::format("must be an integer between {} and {}", low, high));
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

  // The fields of an object in this one.
  BodyFields inside(const char* name, const json& object) const {
    return {object, error_, fmt::format("{}{}.", prefix_, name)};
  }

  void wrong(const std::string& name, const std::string& what) {
    const std::string full = prefix_ + name;
    fail({.message = fmt::format("'{}' {}", full, what), .param = full});
  }
  void fail(ApiError error) {
    if (!error_) error_ = std::move(error);
  }

 private:
  const json& object_;
  std::optional<ApiError>& error_;
  const std::string prefix_;
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

void read_banned_strings(BodyFields& fields, std::vector<std::string>& banned) {
  const json* field = fields.find("banned_strings");
  if (field == nullptr) return;
  const std::string form = fmt::format("must be a list of up to {} strings", kMaxBannedStrings);
  if (!field->is_array() || field->size() > kMaxBannedStrings)
    return fields.wrong("banned_strings", form);
  for (const json& item : *field) {
    if (!item.is_string() || item.get_ref<const std::string&>().empty())
      return fields.wrong("banned_strings", form + ", none of them empty");
    banned.push_back(item.get<std::string>());
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
  if (auto error = read_sampler_fields(fields.object(), request.generation))
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
    if (auto error = read_message_tools(i, message, read)) return fields.fail(std::move(*error));
    messages.push_back(std::move(read));
  }
  if (auto error = check_tool_results(messages)) return fields.fail(std::move(*error));
  name_tool_results(messages);
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
    request.generation.prompt_logprobs = request.logprobs && request.echo;
    return;
  }
  fields.boolean("logprobs", request.logprobs);
  const bool given = fields.integer("top_logprobs", top, 0, kMaxTopLogprobs);
  if (given && top > 0 && !request.logprobs)
    fields.wrong("top_logprobs", "needs 'logprobs' to be true");
}

// {"ratio": 0.5}, and optionally "question_ratio", "unit" and "min_tokens".
void read_compress(BodyFields& fields, ApiRequest& request) {
  const json* field = fields.find("compress");
  if (field == nullptr) return;
  BodyFields inner = fields.inside("compress", *field);
  if (!field->is_object() || inner.find("ratio") == nullptr)
    return fields.wrong("compress", "must be an object with a ratio, such as {\"ratio\": 0.5}");
  const bool texts = std::ranges::all_of(request.prompts, [](const ApiRequest::Prompt& prompt) {
    return std::holds_alternative<std::string>(prompt);
  });
  if (!texts) return fields.wrong("compress", "cannot shorten token ids; send the prompt as text");
  constexpr std::string_view kKnown[] = {"ratio", "question_ratio", "unit", "min_tokens"};
  if (auto unknown = check_known(*field, kKnown)) {
    unknown->param = "compress";
    return fields.fail(std::move(*unknown));
  }
  CompressionOptions& options = request.compress.emplace();
  const auto ratio = [&](const char* name, double& value) {
    const json* given = inner.find(name);
    if (given == nullptr) return;
    value = given->is_number() ? given->get<double>() : 0;
    if (!is_compression_ratio(value)) inner.wrong(name, "must be above 0 and at most 1");
  };
  ratio("ratio", options.ratio);
  ratio("question_ratio", options.question_ratio);
  inner.integer("min_tokens", options.min_tokens, 0, std::numeric_limits<int32_t>::max());
  std::string unit = "phrase";
  inner.text("unit", unit);
  const std::optional<CompressUnit> chosen = compress_unit(unit);
  if (!chosen) return inner.wrong("unit", "must be \"token\", \"phrase\" or \"sentence\"");
  options.unit = *chosen;
}

// Two limits must be the same, unless one of them is none. The engine cuts a limit beyond the context to
// what fits.
void read_max_tokens(BodyFields& fields, ApiRequest& request) {
  using Limits = std::numeric_limits<int64_t>;
  constexpr int64_t kNoLimit = -1;
  GenerationRequest& generation = request.generation;
  std::optional<int64_t> given;
  for (const char* name : {"max_tokens", "max_completion_tokens"}) {
    int64_t tokens = 0;
    if (!fields.integer(name, tokens, Limits::min(), Limits::max())) continue;
    if (tokens == kNoLimit) continue;
    if (given.value_or(tokens) != tokens) return fields.wrong(name, "contradicts 'max_tokens'");
    given = tokens;
    // With `echo` there is something to reply even without a new token.
    if (tokens < 0 || (tokens == 0 && !request.echo))
      fields.wrong(name, "must be at least 1, or -1 for no limit");
    generation.generate = tokens > 0;
    generation.max_tokens =
        static_cast<uint32_t>(std::min<int64_t>(tokens, std::numeric_limits<int32_t>::max()));
  }
}

// What only /v1/completions has, except for the prompt.
void read_completion_fields(BodyFields& fields, ApiRequest& request) {
  fields.boolean("echo", request.echo);
  if (const json* suffix = fields.find("suffix"); suffix != nullptr && *suffix != "")
    fields.text("suffix", request.suffix.emplace());
  if (request.echo && request.suffix) fields.wrong("echo", "cannot be combined with 'suffix'");
}

void read_body_fields(BodyFields& fields, ApiKind kind, const ApiContext& context,
                      ApiRequest& request) {
  GenerationRequest& generation = request.generation;
  fields.text("model", request.model);
  if (kind == ApiKind::kChat)
    read_messages(fields, request.messages);
  else
    read_prompts(fields, context.vocabulary, request.prompts);
  if (kind == ApiKind::kCompletion) read_completion_fields(fields, request);
  read_max_tokens(fields, request);
  read_sampling(fields, request);
  if (const json* biases = fields.find("logit_bias"))
    if (auto error =
            read_logit_bias(*biases, context.vocabulary, context.encode, generation.biases))
      fields.fail(std::move(*error));
  read_stop(fields, generation.stop);
  read_banned_strings(fields, generation.banned_strings);
  read_compress(fields, request);
  read_logprobs(fields, kind, request);
  fields.integer("n", request.n, 1, kMostCompletions);
  if (request.prompts.size() * request.n > kMostChoices)
    fields.wrong("prompt",
                 fmt::format("must, times 'n', ask for at most {} completions", kMostChoices));
  fields.integer("priority", generation.priority, -1000, 1000);
  fields.boolean("ignore_eos", generation.ignore_end);
  fields.boolean("stream", request.stream);
  if (const json* prediction = fields.find("prediction"))
    if (const auto wrong = read_prediction(*prediction, request.prediction))
      fields.wrong("prediction", *wrong);
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
  std::variant<StructuredOutput, ApiError> structured;
  return parse_fields(
      body, std::move(request),
      [&](const json& object) {
        std::optional<ApiError> error = check_fields(kind, object);
        if (!error) structured = read_structured_fields(object, body);
        return error;
      },
      [&](BodyFields& fields, ApiRequest& read) {
        read_body_fields(fields, kind, context, read);
        if (ApiError* error = std::get_if<ApiError>(&structured))
          fields.fail(std::move(*error));
        else
          read.structured = std::get<StructuredOutput>(std::move(structured));
        if (auto wrong = read_decoding_fields(fields.object(), read))
          fields.fail(std::move(*wrong));
        if (kind != ApiKind::kChat) return;
        if (auto error = read_tool_fields(body, fields.object(), read.tools))
          fields.fail(std::move(*error));
      });
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
