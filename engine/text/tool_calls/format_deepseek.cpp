// DeepSeek. V3 and R1 write "function", the separator, the name, and the arguments fenced as code;
// V3.1 writes the name, the separator and the arguments. All calls together have a pair of markers
// around them.
#include <fmt/format.h>

#include "engine/text/tool_calls/call_format.h"
#include "engine/text/tool_calls/call_grammar.h"
#include "engine/text/tool_calls/named_calls.h"

namespace hearth {
namespace {

constexpr NamedCallsShape kDeepSeekShape{.open = "<｜tool▁call▁begin｜>",
                                         .separator = "<｜tool▁sep｜>",
                                         .close = "<｜tool▁call▁end｜>",
                                         .list_open = "<｜tool▁calls▁begin｜>",
                                         .list_close = "<｜tool▁calls▁end｜>",
                                         .word_before_name = "function"};

}  // namespace

const CallFormat& deepseek_format() {
  static const CallFormat format{
      .name = "deepseek",
      .markers = {kDeepSeekShape.open, kDeepSeekShape.separator, kDeepSeekShape.close,
                  kDeepSeekShape.list_open, kDeepSeekShape.list_close},
      .fits = [](std::string_view source) { return mentions(source, "<｜tool▁call▁begin｜>"); },
      .make_reader = [](std::span<const Tool>) -> std::unique_ptr<CallReader> {
        return std::make_unique<NamedCalls>(kDeepSeekShape);
      },
      .calls_open = "<｜tool▁calls▁begin｜>",
      .calls_close = "<｜tool▁calls▁end｜>",
      // A model writes what it was trained on: both forms have the same markers.
      .call_rule =
          [](const Tool& tool, const FixedText& fixed) {
            const std::string arguments = arguments_rule(tool);
            return fmt::format("{} ({} {} | {} {} {}) {}", fixed(kDeepSeekShape.open),
                               fixed(tool.name + "<｜tool▁sep｜>"), arguments,
                               fixed("function<｜tool▁sep｜>" + tool.name + "\n```json\n"),
                               arguments, fixed("\n```"), fixed(kDeepSeekShape.close));
          },
      .trigger = kDeepSeekShape.list_open};
  return format;
}

}  // namespace hearth
