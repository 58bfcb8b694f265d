// Gemma 4: <|tool_call>call:f{city:<|"|>Paris<|"|>,days:3}<tool_call|>. The arguments are JSON
// without quotes around keys, and with a marker of their own for those around strings.
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/text/tool_calls/call_format.h"
#include "engine/text/tool_calls/gemma_arguments.h"
#include "engine/text/tool_calls/json_scanner.h"
#include "engine/text/tool_calls/marker_search.h"

namespace hearth {
namespace {

constexpr std::string_view kGemmaOpen = "<|tool_call>", kGemmaClose = "<tool_call|>",
                           kGemmaQuote = "<|\"|>", kGemmaCall = "call:";
constexpr std::size_t kLongestGemmaHead = 256;

class GemmaCalls final : public CallReader {
 public:
  void push(char byte, ReplySink& sink) override {
    std::string text;
    switch (place_) {
      case Place::kText: {
        const bool opened = text_.push(byte, text).has_value();
        sink.content(text);
        if (!opened) return;
        seen_ = kGemmaOpen;
        head_.clear();
        place_ = Place::kHead;
        return;
      }
      case Place::kHead:
        return push_head(byte, sink);
      case Place::kArguments: {
        const auto marker = quotes_.push(byte, text);
        for (const char c : text) push_argument(c, sink);
        if (!marker || place_ != Place::kArguments) return;
        if (*marker == 0) return quote(sink);
        // Closed before its arguments were.
        end_word(sink, false);
        sink.end_call(kArgumentsNotJson);
        place_ = Place::kText;
        return;
      }
      case Place::kAfter:
        if (after_.push(byte, text)) place_ = Place::kText;
    }
  }

  void finish(ReplySink& sink) override {
    switch (place_) {
      case Place::kText:
        return sink.content(text_.finish());
      case Place::kHead:
        return sink.content(seen_);
      case Place::kArguments:
        for (const char c : quotes_.finish()) push_argument(c, sink);
        if (place_ != Place::kArguments) return;
        end_word(sink, false);
        return sink.end_call(kCallCutOff);
      case Place::kAfter:
        return;
    }
  }

 private:
  enum class Place { kText, kHead, kArguments, kAfter };

  void push_head(char byte, ReplySink& sink) {
    seen_ += byte;
    if (byte != '{') {
      head_ += byte;
      if (seen_.size() <= kLongestGemmaHead) return;
    }
    const std::string_view head(head_);
    if (byte != '{' || !head.starts_with(kGemmaCall) || head.size() == kGemmaCall.size()) {
      place_ = Place::kText;
      return sink.content(std::exchange(seen_, {}));
    }
    sink.begin_call(head.substr(kGemmaCall.size()));
    sink.arguments("{");
    depth_ = 1;
    in_text_ = false;
    word_.clear();
    place_ = Place::kArguments;
  }

  void quote(ReplySink& sink) {
    if (!in_text_) end_word(sink, false);
    in_text_ = !in_text_;
    sink.arguments("\"");
  }

  void push_argument(char byte, ReplySink& sink) {
    if (place_ != Place::kArguments) return;  // after the arguments, before the closing marker
    if (in_text_) {
      std::string escaped;
      append_json_escaped(escaped, std::string_view(&byte, 1));
      return sink.arguments(escaped);
    }
    if (std::string_view("{}[]:,").find(byte) == std::string_view::npos) {
      if (!is_reply_space(byte) || !word_.empty()) word_ += byte;
      return;
    }
    end_word(sink, byte == ':');
    sink.arguments(std::string_view(&byte, 1));
    if (byte == '{' || byte == '[') ++depth_;
    if (byte != '}' && byte != ']') return;
    if (--depth_ > 0) return;
    sink.end_call();
    place_ = Place::kAfter;
  }

  // Keys get quotes, and so does a value that is no JSON without them.
  void end_word(ReplySink& sink, bool is_key) {
    if (word_.empty()) return;
    std::string word = std::exchange(word_, {});
    word.erase(word.find_last_not_of(kReplySpace) + 1);
    if (is_key || !nlohmann::json::accept(word)) {
      std::string quoted = "\"";
      append_json_escaped(quoted, word);
      word = quoted + "\"";
    }
    sink.arguments(word);
  }

  Place place_ = Place::kText;
  MarkerSearch text_{{kGemmaOpen}}, quotes_{{kGemmaQuote, kGemmaClose}}, after_{{kGemmaClose}};
  std::string seen_, head_, word_;
  std::size_t depth_ = 0;
  bool in_text_ = false;
};

}  // namespace

const CallFormat& gemma_format() {
  static const CallFormat format{
      .name = "gemma",
      .markers = {kGemmaOpen, kGemmaClose, kGemmaQuote},
      .fits = [](std::string_view source) { return mentions(source, kGemmaOpen); },
      .make_reader = [](std::span<const Tool>) -> std::unique_ptr<CallReader> {
        return std::make_unique<GemmaCalls>();
      },
      .calls_open = kGemmaOpen,
      .calls_between = "<tool_call|><|tool_call>",
      .calls_close = kGemmaClose,
      .call_rule = [](const Tool& tool, const FixedText& fixed) -> std::string {
        const std::string arguments = gemma_arguments_rule(tool.parameters, fixed, kGemmaQuote);
        if (arguments.empty()) return {};
        return fixed("call:" + tool.name) + " " + arguments;
      },
      .trigger = kGemmaOpen};
  return format;
}

}  // namespace hearth
