#include "tools/server/api/ollama_request.h"

#include <deque>

#include <fmt/format.h>

#include "tools/server/api/field_rules.h"

namespace hearth {
namespace {

using nlohmann::ordered_json;
using MaybeError = std::optional<ApiError>;

constexpr std::string_view kOllamaRead[] = {"messages", "prompt", "system", "raw",   "format",
                                            "options",  "stream", "think",  "tools", "model"};
constexpr std::string_view kOllamaHarmless[] = {"keep_alive", "truncate", "shift"};
constexpr std::string_view kOllamaUnsupported[] = {"images",  "suffix",   "template",
                                                   "context", "logprobs", "top_logprobs"};
constexpr FieldRules kOllamaRules{.read = kOllamaRead,
                                  .passed = {},
                                  .harmless = kOllamaHarmless,
                                  .unsupported = kOllamaUnsupported};

constexpr std::string_view kOptionsRead[] = {"num_predict", "repeat_penalty"};
constexpr std::string_view kOptionsPassed[] = {
    "temperature", "top_k",     "top_p", "min_p",    "seed",         "presence_penalty",
    "stop",        "typical_p", "tfs_z", "mirostat", "mirostat_tau", "frequency_penalty",
    "mirostat_eta"};
// How Ollama runs a model, which is decided when this server starts.
constexpr std::string_view kOptionsHarmless[] = {
    "num_ctx",  "num_batch", "num_gpu",  "main_gpu", "num_thread", "num_keep",
    "use_mmap", "use_mlock", "low_vram", "numa",     "f16_kv",     "vocab_only"};
constexpr std::string_view kOptionsUnsupported[] = {"repeat_last_n", "penalize_newline"};
constexpr FieldRules kOptionsRules{.read = kOptionsRead,
                                   .passed = kOptionsPassed,
                                   .harmless = kOptionsHarmless,
                                   .unsupported = kOptionsUnsupported};

constexpr std::string_view kMessageRead[] = {"role",      "content",      "tool_calls",
                                             "tool_name", "tool_call_id", "thinking"};
constexpr std::string_view kMessageUnsupported[] = {"images"};
constexpr FieldRules kMessageRules{
    .read = kMessageRead, .passed = {}, .harmless = {}, .unsupported = kMessageUnsupported};

// Ollama's calls may lack ids. Results are matched with calls in order.
struct CallIds {
  std::deque<std::string> unanswered;
  size_t made = 0;

  std::string next_call() { return unanswered.emplace_back(fmt::format("call_{}", made++)); }
  std::string next_result() {
    if (unanswered.empty()) return "call_0";
    std::string id = std::move(unanswered.front());
    unanswered.pop_front();
    return id;
  }
};

MaybeError read_ollama_calls(const std::string& name, const ordered_json& calls, CallIds& ids,
                             ordered_json& message) {
  if (!calls.is_array()) return field_error(name, "must be a list");
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string call_name = fmt::format("{}[{}].function", name, i);
    const ordered_json* const function =
        calls[i].is_object() ? given_field(calls[i], "function") : nullptr;
    if (function == nullptr || text_field(*function, "name").empty())
      return field_error(call_name, "must be an object with a name");
    const ordered_json* const arguments = given_field(*function, "arguments");
    message["tool_calls"].push_back(
        {{"id", ids.next_call()},
         {"type", "function"},
         {"function",
          {{"name", (*function)["name"]},
           {"arguments", arguments == nullptr ? "{}" : arguments->dump()}}}});
  }
  return std::nullopt;
}

MaybeError read_ollama_messages(const ordered_json& list, ordered_json& messages) {
  if (!list.is_array()) return field_error("messages", "must be a list");
  CallIds ids;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string name = fmt::format("messages[{}]", i);
    const ordered_json& given = list[i];
    if (!given.is_object()) return field_error(name, "must be an object");
    ordered_json message = {{"role", text_field(given, "role")}, {"content", nullptr}};
    if (auto error = pass_fields(kMessageRules, given, message, name + ".")) return error;
    const ordered_json* const content = given_field(given, "content");
    if (content != nullptr && !content->is_string())
      return field_error(name + ".content", "must be a string");
    if (content != nullptr) message["content"] = *content;
    if (const ordered_json* calls = given_field(given, "tool_calls"))
      if (auto error = read_ollama_calls(name + ".tool_calls", *calls, ids, message)) return error;
    if (const std::string thinking = text_field(given, "thinking"); !thinking.empty())
      message["reasoning_content"] = thinking;
    if (message["role"] == "tool") message["tool_call_id"] = ids.next_result();
    messages.push_back(std::move(message));
  }
  return std::nullopt;
}

MaybeError read_options(const ordered_json& options, ordered_json& body) {
  if (!options.is_object()) return field_error("options", "must be an object");
  if (auto error = pass_fields(kOptionsRules, options, body, "options.")) return error;
  if (const ordered_json* penalty = given_field(options, "repeat_penalty"))
    body["repetition_penalty"] = *penalty;
  // Negative: without a limit.
  if (const ordered_json* most = given_field(options, "num_predict");
      most != nullptr && !(most->is_number() && *most < 0))
    body["max_tokens"] = *most;
  return std::nullopt;
}

MaybeError read_format(const ordered_json& format, ordered_json& body) {
  if (format == "") return std::nullopt;
  if (format == "json")
    body["response_format"] = {{"type", "json_object"}};
  else if (format.is_object())
    body["response_format"] = {{"type", "json_schema"},
                               {"json_schema", {{"name", "format"}, {"schema", format}}}};
  else
    return field_error("format", "must be 'json' or a JSON Schema");
  return std::nullopt;
}

MaybeError read_think(const ordered_json& think, ordered_json& body) {
  if (think.is_boolean())
    body["chat_template_kwargs"] = {{"enable_thinking", think}};
  else if (think.is_string())
    body["reasoning_effort"] = think;
  else
    return field_error("think", "must be true, false, or a level");
  return std::nullopt;
}

MaybeError read_prompt(const ordered_json& from, OllamaRequest& request) {
  const ordered_json* const prompt = given_field(from, "prompt");
  if (prompt != nullptr && !prompt->is_string()) return field_error("prompt", "must be a string");
  const ordered_json* const raw = given_field(from, "raw");
  if (raw != nullptr && !raw->is_boolean()) return field_error("raw", "must be true or false");
  const ordered_json* const system = given_field(from, "system");
  if (system != nullptr && !system->is_string()) return field_error("system", "must be a string");
  request.load_only = prompt == nullptr || *prompt == "";
  if (request.load_only) return std::nullopt;
  if (raw != nullptr && raw->get<bool>()) {
    request.kind = ApiKind::kCompletion;
    request.body["prompt"] = *prompt;
    return std::nullopt;
  }
  ordered_json& messages = request.body["messages"] = ordered_json::array();
  if (system != nullptr && *system != "")
    messages.push_back({{"role", "system"}, {"content", *system}});
  messages.push_back({{"role", "user"}, {"content", *prompt}});
  return std::nullopt;
}

MaybeError read_conversation(OllamaCall call, const ordered_json& from, OllamaRequest& request) {
  if (call == OllamaCall::kGenerate) {
    if (given_field(from, "messages") != nullptr)
      return field_error("messages", "belongs to /api/chat");
    return read_prompt(from, request);
  }
  for (const char* name : {"prompt", "system", "raw"})
    if (given_field(from, name) != nullptr) return field_error(name, "belongs to /api/generate");
  const ordered_json* const list = given_field(from, "messages");
  request.load_only = list == nullptr || list->empty();
  if (request.load_only) return std::nullopt;
  request.body["messages"] = ordered_json::array();
  return read_ollama_messages(*list, request.body["messages"]);
}

}  // namespace

std::span<const FieldName> ollama_field_names() {
  static constexpr FieldName kNames[] = {{"response_format", "format"},
                                         {"chat_template_kwargs", "think"},
                                         {"reasoning_effort", "think"},
                                         {"max_tokens", "options.num_predict"},
                                         {"repetition_penalty", "options.repeat_penalty"},
                                         {"temperature", "options.temperature"},
                                         {"top_k", "options.top_k"},
                                         {"top_p", "options.top_p"},
                                         {"min_p", "options.min_p"},
                                         {"seed", "options.seed"},
                                         {"stop", "options.stop"},
                                         {"presence_penalty", "options.presence_penalty"},
                                         {"frequency_penalty", "options.frequency_penalty"},
                                         {"typical_p", "options.typical_p"},
                                         {"tfs_z", "options.tfs_z"},
                                         {"mirostat", "options.mirostat"},
                                         {"mirostat_tau", "options.mirostat_tau"},
                                         {"mirostat_eta", "options.mirostat_eta"}};
  return kNames;
}

std::variant<OllamaRequest, ApiError> parse_ollama_request(OllamaCall call, std::string_view text) {
  const auto parsed = parse_ordered_body(text);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return *error;
  const ordered_json& from = std::get<ordered_json>(parsed);
  OllamaRequest request{.body = ordered_json::object()};
  if (auto error = pass_fields(kOllamaRules, from, request.body)) return *error;
  if (auto error = read_conversation(call, from, request)) return *error;
  if (const ordered_json* options = given_field(from, "options"))
    if (auto error = read_options(*options, request.body)) return *error;
  if (const ordered_json* format = given_field(from, "format"))
    if (auto error = read_format(*format, request.body)) return *error;
  if (const ordered_json* think = given_field(from, "think"))
    if (auto error = read_think(*think, request.body)) return *error;
  if (const ordered_json* tools = given_field(from, "tools")) request.body["tools"] = *tools;
  if (const ordered_json* model = given_field(from, "model")) request.body["model"] = *model;
  const ordered_json* const stream = given_field(from, "stream");
  request.body["stream"] = stream == nullptr ? ordered_json(true) : *stream;
  return request;
}

}  // namespace hearth
