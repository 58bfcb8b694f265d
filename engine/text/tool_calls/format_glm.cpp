// GLM 4.5 and later: <tool_call>f, then <arg_key>city</arg_key><arg_value>Paris</arg_value> for
// each argument, then </tool_call>.
#include "engine/text/tool_calls/call_format.h"
#include "engine/text/tool_calls/call_grammar.h"
#include "engine/text/tool_calls/parameter_calls.h"

namespace hearth {
namespace {

constexpr ParameterCallsShape kGlmShape{.open = "<tool_call>",
                                        .open_end = "\n",
                                        .key = "<arg_key>",
                                        .key_end = "</arg_key>",
                                        .value = "<arg_value>",
                                        .value_end = "</arg_value>",
                                        .close = "</tool_call>"};

}  // namespace

const CallFormat& glm_format() {
  static const CallFormat format{
      .name = "glm",
      .markers = {kGlmShape.open, kGlmShape.key, kGlmShape.key_end, kGlmShape.value,
                  kGlmShape.value_end, kGlmShape.close},
      .fits = [](std::string_view source) { return mentions(source, "<arg_key>"); },
      .make_reader = [](std::span<const Tool> tools) -> std::unique_ptr<CallReader> {
        return std::make_unique<ParameterCalls>(kGlmShape, tools);
      },
      .calls_open = "<tool_call>",
      .calls_between = "</tool_call>\n<tool_call>",
      .calls_close = "</tool_call>",
      .call_rule =
          [](const Tool& tool, const FixedText& fixed) {
            return parameters_rule(tool, fixed,
                                   {.open = tool.name + "\n",
                                    .before_key = "<arg_key>",
                                    .after_key = "</arg_key>\n<arg_value>",
                                    .after_value = "</arg_value>\n"});
          },
      .trigger = "<tool_call>"};
  return format;
}

}  // namespace hearth
