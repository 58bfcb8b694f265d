// Llama 3: the reply is {"name": "f", "parameters": {...}}, with or without <|python_tag|> before
// it. Several calls are separated by semicolons.
#include "engine/text/tool_calls/call_format.h"
#include "engine/text/tool_calls/call_grammar.h"
#include "engine/text/tool_calls/json_calls.h"

namespace hearth {

const CallFormat& llama3_format() {
  static const CallFormat format{
      .name = "llama3",
      .markers = {"<|python_tag|>"},
      .fits =
          [](std::string_view source) {
            return mentions(source, "<|start_header_id|>") && mentions(source, "\"parameters\"");
          },
      .make_reader = [](std::span<const Tool> tools) -> std::unique_ptr<CallReader> {
        return std::make_unique<JsonCalls>(
            JsonCallsShape{.opens = {"<|python_tag|>"}, .bare = true}, tools);
      },
      .calls_between = "; ",
      .call_rule =
          [](const Tool& tool, const FixedText& fixed) {
            return named_object_rule(tool, fixed, "parameters");
          },
      .several = false};
  return format;
}

}  // namespace hearth
