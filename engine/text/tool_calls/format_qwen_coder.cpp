// Qwen3-Coder: <tool_call><function=f><parameter=city>Paris</parameter></function></tool_call>,
// with line breaks around values.
#include "engine/text/tool_calls/call_format.h"
#include "engine/text/tool_calls/call_grammar.h"
#include "engine/text/tool_calls/parameter_calls.h"

namespace hearth {
namespace {

constexpr ParameterCallsShape kQwenCoderShape{.open = "<function=",
                                              .open_end = ">",
                                              .key = "<parameter=",
                                              .key_end = ">",
                                              .value_end = "</parameter>",
                                              .close = "</function>",
                                              .list_open = "<tool_call>",
                                              .list_close = "</tool_call>"};

}  // namespace

const CallFormat& qwen_coder_format() {
  static const CallFormat format{
      .name = "qwen-coder",
      .markers = {"<tool_call>", "</tool_call>"},
      .fits =
          [](std::string_view source) {
            return mentions(source, "<function=") && mentions(source, "<parameter=") &&
                   mentions(source, "<tool_call>");
          },
      .make_reader = [](std::span<const Tool> tools) -> std::unique_ptr<CallReader> {
        return std::make_unique<ParameterCalls>(kQwenCoderShape, tools);
      },
      .calls_open = "<tool_call>\n",
      .calls_between = "\n</tool_call>\n<tool_call>\n",
      .calls_close = "\n</tool_call>",
      .call_rule =
          [](const Tool& tool, const FixedText& fixed) {
            return parameters_rule(tool, fixed,
                                   {.open = "<function=" + tool.name + ">\n",
                                    .before_key = "<parameter=",
                                    .after_key = ">\n",
                                    .after_value = "\n</parameter>\n",
                                    .close = "</function>"});
          },
      .trigger = "<tool_call>"};
  return format;
}

}  // namespace hearth
