#include "tools/server/tool_fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hearth {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr size_t kMostTools = 128;
constexpr size_t kLongestToolName = 64;
constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium", "high", "xhigh"};

ApiError wrong_field(const std::string& name, std::string_view what) {
  return {.message = fmt::format("'{}' {}", name, what), .param = name};
}

// A field that is there and not null.
const json* find_field(const json& object, const char* name) {
  const auto place = object.find(name);
  return place == object.end() || place->is_null() ? nullptr : &*place;
}

bool is_tool_name(const std::string& name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= kLongestToolName && std::ranges::all_of(name, fits);
}

// The members of the body whose order matters, in the order in which they were written.
ordered_json parse_in_order(std::string_view body) {
  const auto keep = [](int depth, ordered_json::parse_event_t event, ordered_json& parsed) {
    return depth != 1 || event != ordered_json::parse_event_t::key || parsed == "tools" ||
           parsed == "chat_template_kwargs";
  };
  return ordered_json::parse(body, keep, /*allow_exceptions=*/false);
}

std::optional<ApiError> read_tool(const std::string& name, const ordered_json& given,
                                  std::vector<Tool>& tools) {
  if (!given.is_object()) return wrong_field(name, "must be an object");
  if (const auto type = given.find("type"); type != given.end() && *type != "function")
    return ApiError{.message = fmt::format("'{}.type' must be 'function'", name),
                    .param = name + ".type",
                    .code = "unsupported_tool"};
  const auto function = given.find("function");
  if (function == given.end() || !function->is_object())
    return wrong_field(name + ".function", "must be an object");
  const auto text = [&](const char* key) {
    const auto field = function->find(key);
    return field != function->end() && field->is_string() ? field->get<std::string>() : "";
  };
  Tool tool{.name = text("name"), .description = text("description"), .parameters = {}};
  if (!is_tool_name(tool.name))
    return wrong_field(
        name + ".function.name",
        fmt::format("must have 1 to {} letters, digits, '_', '-' or '.'", kLongestToolName));
  if (find_tool(tools, tool.name) != nullptr)
    return wrong_field(name + ".function.name", fmt::format("is '{}' twice", tool.name));
  if (const auto schema = function->find("parameters");
      schema != function->end() && !schema->is_null()) {
    if (!schema->is_object())
      return wrong_field(name + ".function.parameters", "must be a JSON schema");
    tool.parameters = *schema;
  }
  tools.push_back(std::move(tool));
  return std::nullopt;
}

std::optional<ApiError> read_tools(const ordered_json& given, std::vector<Tool>& tools) {
  if (!given.is_array() || given.size() > kMostTools)
    return wrong_field("tools", fmt::format("must be a list of up to {}", kMostTools));
  for (size_t i = 0; i < given.size(); ++i)
    if (auto error = read_tool(fmt::format("tools[{}]", i), given[i], tools)) return error;
  return std::nullopt;
}

// Leaves only the tool that the request names.
std::optional<ApiError> read_named_choice(const json& choice, ToolFields& read) {
  const json* const function = choice.is_object() && choice.value("type", json()) == "function"
                                   ? find_field(choice, "function")
                                   : nullptr;
  const json* const name =
      function != nullptr && function->is_object() ? find_field(*function, "name") : nullptr;
  if (name == nullptr || !name->is_string())
    return wrong_field("tool_choice",
                       "must be 'none', 'auto', 'required' or {\"type\": \"function\", "
                       "\"function\": {\"name\": ...}}");
  const Tool* const tool = find_tool(read.tools, name->get_ref<const std::string&>());
  if (tool == nullptr) return wrong_field("tool_choice", "names a function that is not in 'tools'");
  read.first_tool = static_cast<size_t>(tool - read.tools.data());
  read.tools = {Tool(*tool)};
  read.choice = ToolFields::Choice::kRequired;
  read.parallel = false;
  return std::nullopt;
}

std::optional<ApiError> read_choice(const json& choice, ToolFields& read) {
  using Choice = ToolFields::Choice;
  if (choice == "none")
    read.choice = Choice::kNone;
  else if (choice == "auto")
    read.choice = Choice::kAuto;
  else if (choice == "required" && !read.tools.empty())
    read.choice = Choice::kRequired;
  else if (choice == "required")
    return wrong_field("tool_choice", "needs 'tools'");
  else
    return read_named_choice(choice, read);
  return std::nullopt;
}

std::optional<ApiError> read_reasoning(const json& fields, const ordered_json& in_order,
                                       ordered_json& variables) {
  if (find_field(fields, "chat_template_kwargs") != nullptr) {
    variables = in_order["chat_template_kwargs"];
    if (!variables.is_object()) return wrong_field("chat_template_kwargs", "must be an object");
    // What the request says elsewhere.
    for (const char* const name : {"messages", "tools", "add_generation_prompt"})
      if (variables.contains(name))
        return wrong_field(fmt::format("chat_template_kwargs.{}", name), "cannot be set here");
  }
  const json* const effort = find_field(fields, "reasoning_effort");
  if (effort == nullptr) return std::nullopt;
  if (!effort->is_string() ||
      std::ranges::find(kEfforts, effort->get_ref<const std::string&>()) == std::end(kEfforts))
    return wrong_field("reasoning_effort",
                       fmt::format("must be one of {}", fmt::join(kEfforts, ", ")));
  if (variables.is_null()) variables = ordered_json::object();
  const auto set = [&](const char* name, const ordered_json& value) {
    if (!variables.contains(name)) variables[name] = value;
  };
  if (*effort != "none") {
    set("reasoning_effort", effort->get<std::string>());
  } else {
    // The names that the families' templates have for it.
    set("enable_thinking", false);
    set("thinking", false);
  }
  return std::nullopt;
}

std::optional<ApiError> read_calls(const std::string& name, const json& calls,
                                   std::vector<ChatToolCall>& read) {
  if (!calls.is_array()) return wrong_field(name, "must be a list");
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string one = fmt::format("{}[{}]", name, i);
    const json* const function = calls[i].is_object() ? find_field(calls[i], "function") : nullptr;
    if (function == nullptr || !function->is_object())
      return wrong_field(one + ".function", "must be an object");
    const auto text = [](const json& object, const char* key) -> std::optional<std::string> {
      const json* const field = find_field(object, key);
      if (field == nullptr || !field->is_string()) return std::nullopt;
      return field->get<std::string>();
    };
    const auto called = text(*function, "name"), arguments = text(*function, "arguments");
    if (!called || called->empty()) return wrong_field(one + ".function.name", "must be a string");
    if (!arguments) return wrong_field(one + ".function.arguments", "must be a string");
    read.push_back({.id = text(calls[i], "id").value_or(""),
                    .name = *called,
                    .arguments = arguments->empty() ? "{}" : *arguments});
  }
  return std::nullopt;
}

}  // namespace

std::optional<ApiError> read_tool_fields(std::string_view body, const json& fields,
                                         ToolFields& read) {
  const json* const tools = find_field(fields, "tools");
  const bool needs_order =
      tools != nullptr || find_field(fields, "chat_template_kwargs") != nullptr;
  const ordered_json in_order = needs_order ? parse_in_order(body) : ordered_json();
  if (tools != nullptr) {
    if (auto error = read_tools(in_order["tools"], read.tools)) return error;
    for (const json& tool : *tools)
      if (tool["function"].value("strict", json()) == true) read.strict = true;
  }
  if (const json* const parallel = find_field(fields, "parallel_tool_calls")) {
    if (!parallel->is_boolean()) return wrong_field("parallel_tool_calls", "must be true or false");
    read.parallel = parallel->get<bool>();
  }
  if (const json* const choice = find_field(fields, "tool_choice"))
    if (auto error = read_choice(*choice, read)) return error;
  return read_reasoning(fields, in_order, read.template_variables);
}

std::optional<ApiError> read_message_tools(size_t index, const json& message, ChatMessage& read) {
  const std::string prefix = fmt::format("messages[{}].", index);
  if (const json* const calls = find_field(message, "tool_calls")) {
    if (read.role != "assistant" && !calls->empty())
      return wrong_field(prefix + "tool_calls", "belongs to an assistant's message");
    if (auto error = read_calls(prefix + "tool_calls", *calls, read.tool_calls)) return error;
  }
  const std::pair<const char*, std::string*> texts[] = {{"reasoning_content", &read.reasoning},
                                                        {"tool_call_id", &read.tool_call_id}};
  for (const auto& [name, text] : texts) {
    const json* const field = find_field(message, name);
    if (field == nullptr) continue;
    if (!field->is_string()) return wrong_field(prefix + name, "must be a string");
    *text = field->get<std::string>();
  }
  const json* const name = find_field(message, "name");
  if (read.role == "tool" && name != nullptr && name->is_string())
    read.name = name->get<std::string>();
  return std::nullopt;
}

std::optional<ApiError> check_tool_results(const std::vector<ChatMessage>& messages) {
  std::set<std::string_view> calls;
  for (size_t i = 0; i < messages.size(); ++i) {
    for (const ChatToolCall& call : messages[i].tool_calls) calls.insert(call.id);
    const std::string& answered = messages[i].tool_call_id;
    if (messages[i].role != "tool" || (!answered.empty() && calls.contains(answered))) continue;
    const std::string name = fmt::format("messages[{}].tool_call_id", i);
    if (answered.empty()) return wrong_field(name, "must be the id of the call that it answers");
    return wrong_field(name, fmt::format("is '{}', which is no call in the messages before it",
                                         answered.substr(0, kLongestToolName)));
  }
  return std::nullopt;
}

void name_tool_results(std::vector<ChatMessage>& messages) {
  for (size_t i = 0; i < messages.size(); ++i) {
    ChatMessage& result = messages[i];
    if (result.role != "tool" || !result.name.empty()) continue;
    for (size_t j = i; j-- > 0 && result.name.empty();)
      for (const ChatToolCall& call : messages[j].tool_calls)
        if (call.id == result.tool_call_id) result.name = call.name;
  }
}

}  // namespace hearth
