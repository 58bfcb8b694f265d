#include "tools/server/api/responses_request.h"

#include <utility>

#include <fmt/format.h>

#include "tools/server/api/field_rules.h"

namespace hearth {
namespace {

using nlohmann::ordered_json;
using MaybeError = std::optional<ApiError>;

constexpr std::string_view kResponsesRead[] = {
    "model", "input",       "instructions",      "previous_response_id",
    "store", "text",        "max_output_tokens", "reasoning",
    "tools", "tool_choice", "truncation",        "metadata"};
constexpr std::string_view kResponsesPassed[] = {"temperature",
                                                 "top_p",
                                                 "stream",
                                                 "user",
                                                 "top_k",
                                                 "min_p",
                                                 "presence_penalty",
                                                 "frequency_penalty",
                                                 "logit_bias",
                                                 "stop",
                                                 "seed",
                                                 "priority",
                                                 "ignore_eos",
                                                 "repetition_penalty",
                                                 "parallel_tool_calls"};
constexpr std::string_view kResponsesHarmless[] = {"service_tier", "safety_identifier",
                                                   "prompt_cache_key", "prompt_cache_retention",
                                                   "stream_options"};
constexpr std::string_view kResponsesUnsupported[] = {
    "background", "conversation", "include", "max_tool_calls", "prompt", "context_management"};

constexpr FieldRules kResponsesRules{.read = kResponsesRead,
                                     .passed = kResponsesPassed,
                                     .harmless = kResponsesHarmless,
                                     .unsupported = kResponsesUnsupported};

// The text of a message: a string, or a list of text parts.
MaybeError read_item_text(const std::string& name, const ordered_json& content, std::string& text) {
  if (content.is_string()) {
    text = content.get<std::string>();
    return std::nullopt;
  }
  if (!content.is_array()) return field_error(name, "must be a string or a list of parts");
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string part_name = fmt::format("{}[{}]", name, i);
    const ordered_json& part = content[i];
    const std::string type = text_field(part, "type");
    if (type.empty()) return field_error(part_name, "must be an object with a type");
    if (type != "input_text" && type != "output_text" && type != "text")
      return unsupported_content(part_name, type);
    const ordered_json* const piece = given_field(part, "text");
    if (piece == nullptr || !piece->is_string())
      return field_error(part_name + ".text", "must be a string");
    text += piece->get_ref<const std::string&>();
  }
  return std::nullopt;
}

// Begins a message of the assistant, with the reasoning that came before it.
void add_assistant(ordered_json content, std::string& reasoning, ordered_json& messages) {
  ordered_json message = {{"role", "assistant"}, {"content", std::move(content)}};
  if (!reasoning.empty()) message["reasoning_content"] = std::exchange(reasoning, {});
  messages.push_back(std::move(message));
}

MaybeError read_message_item(const std::string& name, const ordered_json& item,
                             std::string& reasoning, ordered_json& messages) {
  const std::string role = text_field(item, "role");
  if (role != "user" && role != "assistant" && role != "system" && role != "developer")
    return field_error(name + ".role", "must be user, assistant, system or developer");
  const ordered_json* const content = given_field(item, "content");
  if (content == nullptr) return field_error(name + ".content", "is missing");
  std::string text;
  if (auto error = read_item_text(name + ".content", *content, text)) return error;
  if (role == "assistant")
    add_assistant(std::move(text), reasoning, messages);
  else
    messages.push_back({{"role", role}, {"content", text}});
  return std::nullopt;
}

MaybeError read_call_item(const std::string& name, const ordered_json& item, std::string& reasoning,
                          KnownCallIds& calls, ordered_json& messages) {
  for (const char* field : {"call_id", "name", "arguments"})
    if (const ordered_json* value = given_field(item, field);
        value == nullptr || !value->is_string())
      return field_error(fmt::format("{}.{}", name, field), "must be a string");
  calls.insert(item["call_id"].get<std::string>());
  // Calls that a model made together are one message.
  if (messages.empty() || messages.back()["role"] != "assistant")
    add_assistant(nullptr, reasoning, messages);
  messages.back()["tool_calls"].push_back(
      {{"id", item["call_id"]},
       {"type", "function"},
       {"function", {{"name", item["name"]}, {"arguments", item["arguments"]}}}});
  return std::nullopt;
}

MaybeError read_call_output(const std::string& name, const ordered_json& item,
                            const KnownCallIds& calls, ordered_json& messages) {
  const ordered_json* const id = given_field(item, "call_id");
  if (id == nullptr || !id->is_string()) return field_error(name + ".call_id", "must be a string");
  if (auto error = check_answered(calls, id->get<std::string>(), name + ".call_id")) return error;
  const ordered_json* const output = given_field(item, "output");
  if (output == nullptr) return field_error(name + ".output", "is missing");
  std::string text;
  if (auto error = read_item_text(name + ".output", *output, text)) return error;
  messages.push_back({{"role", "tool"}, {"tool_call_id", *id}, {"content", text}});
  return std::nullopt;
}

// Reasoning as a response has it. Summaries, which are not what the model wrote, are skipped.
std::string reasoning_text(const ordered_json& item) {
  std::string text;
  if (const ordered_json* content = given_field(item, "content"); content && content->is_array())
    for (const ordered_json& part : *content) text += text_field(part, "text");
  return text;
}

// `reasoning` belongs to the next message of the assistant.
MaybeError read_item(const std::string& name, const ordered_json& item, std::string& reasoning,
                     KnownCallIds& calls, ordered_json& messages) {
  if (!item.is_object()) return field_error(name, "must be an object");
  const ordered_json* const field = given_field(item, "type");
  if (field != nullptr && !field->is_string())
    return field_error(name + ".type", "must be a string");
  const std::string type = field == nullptr ? "message" : field->get<std::string>();
  if (type == "message") return read_message_item(name, item, reasoning, messages);
  if (type == "function_call") return read_call_item(name, item, reasoning, calls, messages);
  if (type == "function_call_output") return read_call_output(name, item, calls, messages);
  if (type == "reasoning") {
    reasoning += reasoning_text(item);
    return std::nullopt;
  }
  return unsupported_content(name, type);
}

// Of the conversation that a request continues.
KnownCallIds call_ids(const ordered_json& messages) {
  KnownCallIds ids;
  for (const ordered_json& message : messages)
    if (const auto calls = message.find("tool_calls"); calls != message.end())
      for (const ordered_json& call : *calls) ids.insert(call["id"].get<std::string>());
  return ids;
}

MaybeError read_input(const ordered_json& body, ordered_json& messages) {
  const ordered_json* const input = given_field(body, "input");
  if (input != nullptr && input->is_string()) {
    messages.push_back({{"role", "user"}, {"content", *input}});
    return std::nullopt;
  }
  if (input == nullptr || !input->is_array() || input->empty())
    return field_error("input", "must be a string or a list of at least one item");
  std::string reasoning;
  KnownCallIds calls = call_ids(messages);
  for (size_t i = 0; i < input->size(); ++i)
    if (auto error =
            read_item(fmt::format("input[{}]", i), (*input)[i], reasoning, calls, messages))
      return error;
  return std::nullopt;
}

MaybeError read_text_settings(const ordered_json& text, ordered_json& chat) {
  if (!text.is_object()) return field_error("text", "must be an object");
  for (const auto& [name, value] : text.items()) {
    if (value.is_null() || name == "format") continue;
    if (name == "verbosity") {
      chat["verbosity"] = value;
      continue;
    }
    return field_error("text." + name.substr(0, 64), "is not a known field");
  }
  const ordered_json* const format = given_field(text, "format");
  if (format == nullptr) return std::nullopt;
  if (!format->is_object()) return field_error("text.format", "must be an object");
  if (text_field(*format, "type") != "json_schema") {
    chat["response_format"] = *format;
    return std::nullopt;
  }
  // A chat completion has the schema in an object of its own.
  ordered_json schema = *format;
  schema.erase("type");
  chat["response_format"] = {{"type", "json_schema"}, {"json_schema", std::move(schema)}};
  return std::nullopt;
}

MaybeError read_response_tools(const ordered_json& tools, ordered_json& chat) {
  if (!tools.is_array()) return field_error("tools", "must be a list");
  ordered_json functions = ordered_json::array();
  for (size_t i = 0; i < tools.size(); ++i) {
    const std::string name = fmt::format("tools[{}]", i);
    const std::string type = text_field(tools[i], "type");
    if (type.empty()) return field_error(name, "must be an object with a type");
    if (type != "function") return unsupported_content(name, type);
    ordered_json function = tools[i];
    function.erase("type");
    functions.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  chat["tools"] = std::move(functions);
  return std::nullopt;
}

// {"type": "function", "name": NAME} has an object around the name in a chat completion.
ordered_json chat_tool_choice(const ordered_json& choice) {
  if (text_field(choice, "type") != "function" || !choice.contains("name")) return choice;
  return {{"type", "function"}, {"function", {{"name", choice["name"]}}}};
}

MaybeError read_response_reasoning(const ordered_json& reasoning, ordered_json& chat) {
  if (!reasoning.is_object()) return field_error("reasoning", "must be an object");
  static constexpr std::string_view kRead[] = {"effort"};
  static constexpr std::string_view kUnsupported[] = {"summary", "generate_summary"};
  ordered_json none;
  if (auto error =
          pass_fields({.read = kRead, .passed = {}, .harmless = {}, .unsupported = kUnsupported},
                      reasoning, none, "reasoning."))
    return error;
  if (const ordered_json* effort = given_field(reasoning, "effort"))
    chat["reasoning_effort"] = *effort;
  return std::nullopt;
}

MaybeError read_response_settings(const ordered_json& body, ordered_json& chat) {
  if (const ordered_json* model = given_field(body, "model")) chat["model"] = *model;
  if (const ordered_json* tokens = given_field(body, "max_output_tokens"))
    chat["max_tokens"] = *tokens;
  if (const ordered_json* truncation = given_field(body, "truncation");
      truncation != nullptr && *truncation != "disabled")
    return ApiError{.message = "'truncation' may only be 'disabled'",
                    .param = "truncation",
                    .code = "unsupported_parameter"};
  if (const ordered_json* text = given_field(body, "text"))
    if (auto error = read_text_settings(*text, chat)) return error;
  if (const ordered_json* reasoning = given_field(body, "reasoning"))
    if (auto error = read_response_reasoning(*reasoning, chat)) return error;
  if (const ordered_json* tools = given_field(body, "tools"))
    if (auto error = read_response_tools(*tools, chat)) return error;
  if (const ordered_json* choice = given_field(body, "tool_choice"))
    chat["tool_choice"] = chat_tool_choice(*choice);
  return std::nullopt;
}

MaybeError read_previous(const ordered_json& body, const FindConversation& find,
                         ordered_json& conversation) {
  const ordered_json* const previous = given_field(body, "previous_response_id");
  if (previous == nullptr) return std::nullopt;
  if (!previous->is_string()) return field_error("previous_response_id", "must be a string");
  const std::string id = previous->get<std::string>();
  const std::optional<std::string> found = find(id);
  if (!found)
    return ApiError{.message = fmt::format("there is no response '{}'; it was not stored, or has "
                                           "been dropped since",
                                           id.substr(0, 64)),
                    .param = "previous_response_id",
                    .code = "previous_response_not_found"};
  conversation = ordered_json::parse(*found);
  return std::nullopt;
}

// The settings as a response repeats them: null where the request says nothing.
nlohmann::json echoed(const ordered_json& body, bool store) {
  nlohmann::json echo = {{"background", false},
                         {"error", nullptr},
                         {"incomplete_details", nullptr},
                         {"parallel_tool_calls", true},
                         {"metadata", nlohmann::json::object()},
                         {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
                         {"text", {{"format", {{"type", "text"}}}}},
                         {"tool_choice", "auto"},
                         {"tools", nlohmann::json::array()},
                         {"top_logprobs", 0},
                         {"truncation", "disabled"},
                         {"service_tier", "default"},
                         {"usage", nullptr}};
  for (const char* name : {"instructions", "max_output_tokens", "previous_response_id",
                           "temperature", "top_p", "user"})
    echo[name] = nullptr;
  for (const char* name :
       {"instructions", "max_output_tokens", "metadata", "parallel_tool_calls",
        "previous_response_id", "temperature", "text", "tool_choice", "tools", "top_p", "user"})
    if (const ordered_json* value = given_field(body, name)) echo[name] = *value;
  echo["store"] = store;
  return echo;
}

}  // namespace

std::span<const FieldName> responses_field_names() {
  static constexpr FieldName kNames[] = {{"messages", "input"},
                                         {"max_tokens", "max_output_tokens"},
                                         {"response_format", "text.format"},
                                         {"verbosity", "text.verbosity"},
                                         {"reasoning_effort", "reasoning.effort"}};
  return kNames;
}

std::variant<ResponsesRequest, ApiError> parse_responses_request(std::string_view text,
                                                                 const FindConversation& find) {
  const auto parsed = parse_ordered_body(text);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return *error;
  const ordered_json& body = std::get<ordered_json>(parsed);
  ResponsesRequest request{.chat = ordered_json::object(), .conversation = ordered_json::array()};
  for (const char* name : {"max_tokens", "max_completion_tokens"})
    if (given_field(body, name) != nullptr)
      return ApiError{.message = fmt::format("'{}' is called 'max_output_tokens' here", name),
                      .param = name,
                      .code = "unknown_parameter"};
  if (auto error = pass_fields(kResponsesRules, body, request.chat)) return *error;
  if (const ordered_json* store = given_field(body, "store")) {
    if (!store->is_boolean()) return field_error("store", "must be true or false");
    request.store = store->get<bool>();
  }
  if (auto error = read_previous(body, find, request.conversation)) return *error;
  if (auto error = read_input(body, request.conversation)) return *error;
  if (auto error = read_response_settings(body, request.chat)) return *error;
  request.chat["messages"] = request.conversation;
  if (const ordered_json* instructions = given_field(body, "instructions")) {
    if (!instructions->is_string()) return field_error("instructions", "must be a string");
    ordered_json& messages = request.chat["messages"];
    messages.insert(messages.begin(), ordered_json{{"role", "system"}, {"content", *instructions}});
  }
  request.echo = echoed(body, request.store);
  return request;
}

}  // namespace hearth
