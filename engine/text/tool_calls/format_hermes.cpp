// Hermes, and Qwen from 2.5 on: <tool_call>{"name": "f", "arguments": {...}}</tool_call>.
#include "engine/text/tool_calls/call_format.h"
#include "engine/text/tool_calls/call_grammar.h"
#include "engine/text/tool_calls/json_calls.h"

namespace hearth {

const CallFormat& hermes_format() {
  static const CallFormat format{
      .name = "hermes",
      .markers = {"<tool_call>", "</tool_call>"},
      .fits = [](std::string_view source) { return mentions(source, "<tool_call>"); },
      .make_reader = [](std::span<const Tool> tools) -> std::unique_ptr<CallReader> {
        return std::make_unique<JsonCalls>(
            JsonCallsShape{.opens = {"<tool_call>"}, .close = "</tool_call>"}, tools);
      },
      .calls_open = "<tool_call>\n",
      .calls_between = "\n</tool_call>\n<tool_call>\n",
      .calls_close = "\n</tool_call>",
      .call_rule =
          [](const Tool& tool, const FixedText& fixed) {
            return named_object_rule(tool, fixed, "arguments");
          },
      .trigger = "<tool_call>"};
  return format;
}

}  // namespace hearth
