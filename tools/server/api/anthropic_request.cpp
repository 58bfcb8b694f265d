#include "tools/server/api/anthropic_request.h"

#include <fmt/format.h>

#include "tools/server/api/field_rules.h"

namespace hearth {
namespace {

using nlohmann::ordered_json;
using MaybeError = std::optional<ApiError>;

constexpr std::string_view kAnthropicRead[] = {"messages", "system",      "stop_sequences",
                                               "tools",    "tool_choice", "thinking"};
constexpr std::string_view kAnthropicPassed[] = {
    "model",    "max_tokens", "temperature",       "top_p", "top_k", "stream", "min_p", "seed",
    "priority", "ignore_eos", "repetition_penalty"};
constexpr std::string_view kAnthropicHarmless[] = {"metadata", "service_tier", "cache_control"};
constexpr std::string_view kAnthropicUnsupported[] = {"container", "mcp_servers", "output_format",
                                                      "output_config", "context_management"};
constexpr FieldRules kAnthropicRules{.read = kAnthropicRead,
                                     .passed = kAnthropicPassed,
                                     .harmless = kAnthropicHarmless,
                                     .unsupported = kAnthropicUnsupported};

// Text alone: a string, or a list of text blocks.
MaybeError read_text_blocks(const std::string& name, const ordered_json& content,
                            std::string& text) {
  if (content.is_string()) {
    text = content.get<std::string>();
    return std::nullopt;
  }
  if (!content.is_array()) return field_error(name, "must be a string or a list of blocks");
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string block_name = fmt::format("{}[{}]", name, i);
    const std::string type = text_field(content[i], "type");
    if (type.empty()) return field_error(block_name, "must be an object with a type");
    if (type != "text") return unsupported_content(block_name, type);
    const ordered_json* const piece = given_field(content[i], "text");
    if (piece == nullptr || !piece->is_string())
      return field_error(block_name + ".text", "must be a string");
    text += piece->get_ref<const std::string&>();
  }
  return std::nullopt;
}

MaybeError add_tool_use(const std::string& name, const ordered_json& block, KnownCallIds& calls,
                        ordered_json& message) {
  for (const char* field : {"id", "name"})
    if (text_field(block, field).empty())
      return field_error(fmt::format("{}.{}", name, field), "must be a string");
  const ordered_json* const input = given_field(block, "input");
  if (input == nullptr || !input->is_object())
    return field_error(name + ".input", "must be an object");
  calls.insert(text_field(block, "id"));
  message["tool_calls"].push_back(
      {{"id", block["id"]},
       {"type", "function"},
       {"function", {{"name", block["name"]}, {"arguments", input->dump()}}}});
  return std::nullopt;
}

MaybeError add_tool_result(const std::string& name, const ordered_json& block,
                           const KnownCallIds& calls, ordered_json& messages) {
  const std::string id = text_field(block, "tool_use_id");
  if (id.empty()) return field_error(name + ".tool_use_id", "must be a string");
  if (auto error = check_answered(calls, id, name + ".tool_use_id")) return error;
  std::string text;
  if (const ordered_json* content = given_field(block, "content"))
    if (auto error = read_text_blocks(name + ".content", *content, text)) return error;
  messages.push_back({{"role", "tool"}, {"tool_call_id", block["tool_use_id"]}, {"content", text}});
  return std::nullopt;
}

// One message of a chat, with a message before it for each result of a tool.
MaybeError read_blocks(const std::string& name, const std::string& role, const ordered_json& blocks,
                       KnownCallIds& calls, ordered_json& messages) {
  ordered_json message = {{"role", role}, {"content", nullptr}};
  std::string text, thinking;
  bool has_text = false;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const std::string block_name = fmt::format("{}[{}]", name, i);
    const ordered_json& block = blocks[i];
    const std::string type = text_field(block, "type");
    MaybeError error;
    if (type.empty()) {
      error = field_error(block_name, "must be an object with a type");
    } else if (type == "text") {
      if (const ordered_json* piece = given_field(block, "text");
          piece != nullptr && piece->is_string())
        text += piece->get_ref<const std::string&>();
      else
        error = field_error(block_name + ".text", "must be a string");
      has_text = true;
    } else if (type == "tool_use" && role == "assistant") {
      error = add_tool_use(block_name, block, calls, message);
    } else if (type == "tool_result" && role == "user") {
      error = add_tool_result(block_name, block, calls, messages);
    } else if (type == "thinking" && role == "assistant") {
      thinking += text_field(block, "thinking");
    } else if (type != "redacted_thinking") {  // which only Anthropic can read
      error = unsupported_content(block_name, type);
    }
    if (error) return error;
  }
  if (has_text) message["content"] = std::move(text);
  if (!thinking.empty()) message["reasoning_content"] = std::move(thinking);
  if (has_text || role == "assistant") messages.push_back(std::move(message));
  return std::nullopt;
}

MaybeError read_anthropic_messages(const ordered_json& body, ordered_json& messages) {
  const ordered_json* const list = given_field(body, "messages");
  if (list == nullptr || !list->is_array() || list->empty())
    return field_error("messages", "must be a list of at least one message");
  std::string role;
  KnownCallIds calls;
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string name = fmt::format("messages[{}]", i);
    const ordered_json& message = (*list)[i];
    role = text_field(message, "role");
    if (role != "user" && role != "assistant")
      return field_error(name + ".role", "must be user or assistant");
    const ordered_json* const content = given_field(message, "content");
    if (content == nullptr || !(content->is_string() || content->is_array()))
      return field_error(name + ".content", "must be a string or a list of blocks");
    if (content->is_string())
      messages.push_back({{"role", role}, {"content", *content}});
    else if (auto error = read_blocks(name + ".content", role, *content, calls, messages))
      return error;
  }
  if (role == "assistant")
    return ApiError{.message =
                        "the last message is the assistant's; continuing it is not supported "
                        "by this server",
                    .param = fmt::format("messages[{}]", list->size() - 1),
                    .code = "unsupported_parameter"};
  return std::nullopt;
}

MaybeError read_anthropic_tools(const ordered_json& tools, ordered_json& chat) {
  if (!tools.is_array()) return field_error("tools", "must be a list");
  ordered_json functions = ordered_json::array();
  for (size_t i = 0; i < tools.size(); ++i) {
    const ordered_json& tool = tools[i];
    const std::string name = fmt::format("tools[{}]", i);
    // Anthropic's own tools, such as its search, have other types.
    if (const std::string type = text_field(tool, "type"); !type.empty() && type != "custom")
      return unsupported_content(name, type);
    if (text_field(tool, "name").empty()) return field_error(name + ".name", "must be a string");
    ordered_json function = {{"name", tool["name"]}};
    if (const ordered_json* description = given_field(tool, "description"))
      function["description"] = *description;
    if (const ordered_json* schema = given_field(tool, "input_schema"))
      function["parameters"] = *schema;
    if (const ordered_json* strict = given_field(tool, "strict")) function["strict"] = *strict;
    functions.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  chat["tools"] = std::move(functions);
  return std::nullopt;
}

MaybeError read_anthropic_choice(const ordered_json& choice, ordered_json& chat) {
  const std::string type = text_field(choice, "type");
  if (type == "auto" || type == "none") {
    chat["tool_choice"] = type;
  } else if (type == "any") {
    chat["tool_choice"] = "required";
  } else if (type == "tool" && !text_field(choice, "name").empty()) {
    chat["tool_choice"] = {{"type", "function"}, {"function", {{"name", choice["name"]}}}};
  } else {
    return field_error("tool_choice",
                       "must be an object with the type auto, any, none, or tool and a name");
  }
  if (const ordered_json* serial = given_field(choice, "disable_parallel_tool_use")) {
    if (!serial->is_boolean())
      return field_error("tool_choice.disable_parallel_tool_use", "must be true or false");
    chat["parallel_tool_calls"] = !serial->get<bool>();
  }
  return std::nullopt;
}

// Whether the model is to think is a setting of its template.
MaybeError read_thinking(const ordered_json& thinking, ordered_json& chat) {
  const std::string type = text_field(thinking, "type");
  if (type != "enabled" && type != "disabled" && type != "adaptive")
    return field_error("thinking.type", "must be enabled, disabled or adaptive");
  if (type != "adaptive") chat["chat_template_kwargs"] = {{"enable_thinking", type == "enabled"}};
  return std::nullopt;
}

}  // namespace

std::span<const FieldName> anthropic_field_names() {
  static constexpr FieldName kNames[] = {
      {"stop", "stop_sequences"},
      {"parallel_tool_calls", "tool_choice.disable_parallel_tool_use"},
      {"chat_template_kwargs", "thinking"}};
  return kNames;
}

std::variant<ordered_json, ApiError> parse_anthropic_request(AnthropicCall call,
                                                             std::string_view text) {
  const auto parsed = parse_ordered_body(text);
  if (const ApiError* error = std::get_if<ApiError>(&parsed)) return *error;
  const ordered_json& body = std::get<ordered_json>(parsed);
  ordered_json chat = ordered_json::object();
  if (auto error = pass_fields(kAnthropicRules, body, chat)) return *error;
  if (call == AnthropicCall::kCreate && given_field(body, "max_tokens") == nullptr)
    return field_error("max_tokens", "is required");
  // -1 has a meaning in other APIs.
  if (const ordered_json* most = given_field(body, "max_tokens");
      most != nullptr && most->is_number() && most->get<double>() < 1)
    return field_error("max_tokens", "must be at least 1");
  ordered_json messages = ordered_json::array();
  if (const ordered_json* system = given_field(body, "system")) {
    std::string instructions;
    if (auto error = read_text_blocks("system", *system, instructions)) return *error;
    messages.push_back({{"role", "system"}, {"content", instructions}});
  }
  if (auto error = read_anthropic_messages(body, messages)) return *error;
  chat["messages"] = std::move(messages);
  if (const ordered_json* stops = given_field(body, "stop_sequences")) {
    if (!stops->is_array()) return field_error("stop_sequences", "must be a list of strings");
    chat["stop"] = *stops;
  }
  if (const ordered_json* tools = given_field(body, "tools"))
    if (auto error = read_anthropic_tools(*tools, chat)) return *error;
  if (const ordered_json* choice = given_field(body, "tool_choice"))
    if (auto error = read_anthropic_choice(*choice, chat)) return *error;
  if (const ordered_json* thinking = given_field(body, "thinking"))
    if (auto error = read_thinking(*thinking, chat)) return *error;
  return chat;
}

}  // namespace hearth
