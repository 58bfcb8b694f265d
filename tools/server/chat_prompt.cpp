#include "tools/server/chat_prompt.h"

#include "engine/text/encode_chat.h"
#include "engine/text/tool_calls/tool_prompt.h"

namespace hearth {
namespace {

bool uses_tools(const ChatMessage& message) {
  return message.role == "tool" || !message.tool_calls.empty();
}

}  // namespace

Result<ChatPrompt> make_chat_prompt(const ServedModel& model, const ApiRequest& request,
                                    ChatOptions options) {
  HEARTH_ASSIGN(const ChatTemplate* chat, model.chat_template);
  const ToolFields& fields = request.tools;
  const std::span<const Tool> tools =
      fields.may_call() ? std::span<const Tool>(fields.tools) : std::span<const Tool>();
  const nlohmann::ordered_json list = tools_json(tools);
  if (fields.template_variables.is_object()) options.variables = &fields.template_variables;
  const ReplyStyle* const style = model.style.get();
  const bool plain = style != nullptr && !style->template_shows_tools &&
                     (!tools.empty() || std::ranges::any_of(request.messages, uses_tools));
  if (!tools.empty() && !plain) options.tools = &list;
  HEARTH_ASSIGN(jinja::Rendering rendering,
                plain ? chat->render(with_tool_instructions(request.messages, tools), options)
                      : chat->render(request.messages, options));
  const ReasoningMarkers* const reasoning = style != nullptr ? style->format.reasoning : nullptr;
  ChatPrompt prompt{
      .ids = encode_rendering(model.tokenizer, rendering, chat->special_in_messages()),
      .begins_in_reasoning = reasoning != nullptr && ends_in_reasoning(*reasoning, rendering.text)};
  prompt.text = std::move(rendering.text);
  return prompt;
}

}  // namespace hearth
