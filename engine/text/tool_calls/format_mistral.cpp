// Mistral writes [TOOL_CALLS][{"name": "f", "arguments": {...}}, ...], and newer models
// [TOOL_CALLS]f[ARGS]{...}, with [CALL_ID]... before [ARGS] in between. The byte after the marker
// tells them apart.
#include <optional>

#include <fmt/format.h>

#include "engine/text/tool_calls/call_format.h"
#include "engine/text/tool_calls/call_grammar.h"
#include "engine/text/tool_calls/json_calls.h"
#include "engine/text/tool_calls/named_calls.h"

namespace hearth {
namespace {

constexpr std::string_view kMistralCalls = "[TOOL_CALLS]", kMistralArguments = "[ARGS]",
                           kMistralCallId = "[CALL_ID]";

class MistralCalls final : public CallReader {
 public:
  explicit MistralCalls(std::span<const Tool> tools) : tools_(tools), text_({kMistralCalls}) {}

  void push(char byte, ReplySink& sink) override {
    if (reader_ != nullptr) return reader_->push(byte, sink);
    if (!found_) {
      std::string text;
      found_ = text_.push(byte, text).has_value();
      return sink.content(text);
    }
    space_ += byte;
    if (is_reply_space(byte)) return;
    choose(byte == '[', sink);
  }

  void finish(ReplySink& sink) override {
    if (found_ && reader_ == nullptr) choose(true, sink);
    if (reader_ != nullptr) return reader_->finish(sink);
    sink.content(text_.finish());
  }

 private:
  void choose(bool list, ReplySink& sink) {
    if (list)
      reader_ = std::make_unique<JsonCalls>(JsonCallsShape{.opens = {kMistralCalls}}, tools_);
    else
      reader_ = std::make_unique<NamedCalls>(NamedCallsShape{
          .open = kMistralCalls, .separator = kMistralArguments, .name_of = name_of});
    for (const char byte : std::string(kMistralCalls) + space_) reader_->push(byte, sink);
  }

  static std::string_view name_of(std::string_view head) {
    return head.substr(0, head.find(kMistralCallId));
  }

  const std::span<const Tool> tools_;
  MarkerSearch text_;
  bool found_ = false;
  std::string space_;  // what has come after the first marker
  std::unique_ptr<CallReader> reader_;
};

std::unique_ptr<CallReader> make_mistral_reader(std::span<const Tool> tools) {
  return std::make_unique<MistralCalls>(tools);
}

}  // namespace

const CallFormat& mistral_format() {
  static const CallFormat format{
      .name = "mistral",
      .markers = {kMistralCalls, kMistralArguments, kMistralCallId},
      .fits =
          [](std::string_view source) {
            return mentions(source, kMistralCalls) && mentions(source, kMistralArguments);
          },
      .make_reader = make_mistral_reader,
      .calls_open = kMistralCalls,
      .calls_between = kMistralCalls,
      .call_rule =
          [](const Tool& tool, const FixedText& fixed) {
            return fmt::format("{} ({} /[a-zA-Z0-9]{{9}}/)? {} {}", fixed(tool.name),
                               fixed(kMistralCallId), fixed(kMistralArguments),
                               arguments_rule(tool));
          },
      .trigger = kMistralCalls};
  return format;
}

const CallFormat& mistral_list_format() {
  static const CallFormat format{
      .name = "mistral-list",
      .markers = {kMistralCalls},
      .fits = [](std::string_view source) { return mentions(source, kMistralCalls); },
      .make_reader = make_mistral_reader,
      .calls_open = "[TOOL_CALLS][",
      .calls_between = ", ",
      .calls_close = "]",
      .call_rule =
          [](const Tool& tool, const FixedText& fixed) {
            return named_object_rule(tool, fixed, "arguments");
          },
      .trigger = kMistralCalls};
  return format;
}

}  // namespace hearth
