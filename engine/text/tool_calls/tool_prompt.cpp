#include "engine/text/tool_calls/tool_prompt.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace hearth {
namespace {

using Json = nlohmann::ordered_json;

// What the model wrote to make these calls, or would have.
std::string calls_text(const ChatMessage& message) {
  std::string text = message.content;
  for (const ChatToolCall& call : message.tool_calls)
    text += fmt::format("{}<tool_call>\n{{\"name\": {}, \"arguments\": {}}}\n</tool_call>",
                        text.empty() ? "" : "\n", Json(call.name).dump(), call.arguments);
  return text;
}

}  // namespace

bool shows_tools(const ChatTemplate& chat) {
  const Tool probe{
      .name = "hearth_probe",
      .description = "Looks something up.",
      .parameters = {{"type", "object"},
                     {"properties", {{"key", {{"type", "string"}, {"description", "The key."}}}}},
                     {"required", {"key"}}}};
  const Json tools = tools_json(std::span(&probe, 1));
  const ChatMessage message{.role = "user", .content = "Hello"};
  const auto prompt = chat.apply(std::span(&message, 1), {.tools = &tools});
  return prompt.ok() && prompt->find(probe.name) != std::string::npos;
}

std::string tool_instructions(std::span<const Tool> tools) {
  std::string text =
      "You can call functions to answer the user. Their signatures, as JSON:\n<tools>\n";
  for (const Json& tool : tools_json(tools)) text += tool.dump() + "\n";
  return text +
         "</tools>\n\nTo call one, reply with nothing but a JSON object with its name and "
         "arguments "
         "between these tags, once for each call:\n"
         "<tool_call>\n{\"name\": \"NAME\", \"arguments\": {...}}\n</tool_call>\n\n"
         "The results come in the next message between <tool_response> tags. If no function helps, "
         "answer as usual.";
}

std::vector<ChatMessage> with_tool_instructions(std::span<const ChatMessage> messages,
                                                std::span<const Tool> tools) {
  std::vector<ChatMessage> made;
  const std::string instructions = tools.empty() ? std::string() : tool_instructions(tools);
  const bool has_system = !messages.empty() && messages.front().role == "system";
  if (!has_system && !instructions.empty())
    made.push_back({.role = "system", .content = instructions});
  bool after_result = false;
  for (const ChatMessage& message : messages) {
    if (message.role == "tool") {
      const std::string result =
          fmt::format("<tool_response>\n{}\n</tool_response>", message.content);
      // Roles alternate in most templates, so results that follow each other are one message.
      if (after_result)
        made.back().content += "\n" + result;
      else
        made.push_back({.role = "user", .content = result});
      after_result = true;
      continue;
    }
    after_result = false;
    ChatMessage plain{.role = message.role, .content = calls_text(message)};
    if (&message == &messages.front() && has_system && !instructions.empty())
      plain.content += "\n\n" + instructions;
    plain.reasoning = message.reasoning;
    made.push_back(std::move(plain));
  }
  return made;
}

}  // namespace hearth
