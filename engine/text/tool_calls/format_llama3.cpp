// Llama 3: the reply is {"name": "f", "parameters": {...}}, with or without <|python_tag|> before
// it. Several calls are separated by semicolons.
#include "engine/text/tool_calls/call_format.h"
#include "engine/text/tool_calls/call_grammar.h"
#include "engine/text/tool_calls/json_calls.h"

namespace hearth {
namespace {

constexpr std::string_view kPythonTag = "<|python_tag|>";

}  // namespace

const CallFormat& llama3_format() {
  static const CallFormat format{
      .name = "llama3",
      .markers = {kPythonTag},
      .fits =
          [](std::string_view source) {
            return mentions(source, "<|start_header_id|>") && mentions(source, "\"parameters\"");
          },
      .make_reader = [](std::span<const Tool> tools) -> std::unique_ptr<CallReader> {
        return std::make_unique<JsonCalls>(JsonCallsShape{.opens = {kPythonTag}, .bare = true},
                                           tools);
      },
      .calls_between = "; ",
      .call_rule =
          [](const Tool& tool, const FixedText& fixed) {
            return named_object_rule(tool, fixed, "parameters");
          },
      .trigger = "{\"name\": \"",
      .trigger_opens_call = true,
      .trigger_tag = kPythonTag,
      .several = false};
  return format;
}

}  // namespace hearth
