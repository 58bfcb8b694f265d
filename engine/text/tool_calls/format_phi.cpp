// Phi 4 and Granite 3: a list of calls after <|tool_call|>, or after the word functools.
#include "engine/text/tool_calls/call_format.h"
#include "engine/text/tool_calls/call_grammar.h"
#include "engine/text/tool_calls/json_calls.h"

namespace hearth {

const CallFormat& phi_format() {
  static const CallFormat format{
      .name = "phi",
      .markers = {"<|tool_call|>", "<|/tool_call|>", "functools["},
      .fits =
          [](std::string_view source) {
            return mentions(source, "<|tool_call|>") || mentions(source, "<|/tool|>") ||
                   mentions(source, "functools");
          },
      .make_reader = [](std::span<const Tool> tools) -> std::unique_ptr<CallReader> {
        return std::make_unique<JsonCalls>(
            JsonCallsShape{.opens = {"<|tool_call|>", "functools["}, .close = "<|/tool_call|>"},
            tools);
      },
      .calls_open = "<|tool_call|>[",
      .calls_between = ", ",
      .calls_close = "]<|/tool_call|>",
      .call_rule =
          [](const Tool& tool, const FixedText& fixed) {
            return named_object_rule(tool, fixed, "arguments");
          },
      .trigger = "<|tool_call|>"};
  return format;
}

}  // namespace hearth
