// Harmony, the format of gpt-oss. A reply is a sequence of messages:
//   <|channel|>analysis<|message|>reasoning<|end|>
//   <|start|>assistant<|channel|>commentary to=functions.f
//   <|constrain|>json<|message|>{...}<|call|>
//   <|start|>assistant<|channel|>final<|message|>text for the user<|return|>
// The prompt ends with <|start|>assistant. The recipient may also come before the channel.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "engine/text/tool_calls/call_format.h"
#include "engine/text/tool_calls/call_grammar.h"
#include "engine/text/tool_calls/json_scanner.h"
#include "engine/text/tool_calls/marker_search.h"

namespace hearth {
namespace {

constexpr std::string_view kHarmonyStart = "<|start|>", kHarmonyChannel = "<|channel|>",
                           kHarmonyMessage = "<|message|>", kHarmonyEnd = "<|end|>",
                           kHarmonyCall = "<|call|>", kHarmonyReturn = "<|return|>",
                           kHarmonyConstrain = "<|constrain|>";
constexpr std::string_view kHarmonyCallHead = "<|channel|>commentary to=functions.";
constexpr std::size_t kLongestHarmonyHead = 512;

class HarmonyReply final : public CallReader {
 public:
  explicit HarmonyReply(bool calls) : calls_(calls) {}

  void push(char byte, ReplySink& sink) override {
    if (in_head_) return push_head(byte, sink);
    std::string text;
    const auto marker = body_end_.push(byte, text);
    push_body(text, sink);
    if (!marker) return;
    end_message(sink);
    head_ = *marker == 0 ? kHarmonyStart : *marker == 1 ? kHarmonyChannel : "";
    in_head_ = true;
  }

  void finish(ReplySink& sink) override {
    if (in_head_) {
      // After a message an unfinished head says nothing; before any it is the whole reply.
      if (!any_message_) sink.content(head_);
      return;
    }
    push_body(body_end_.finish(), sink);
    end_message(sink);
  }

 private:
  enum class Kind { kContent, kReasoning, kCall };

  void push_head(char byte, ReplySink& sink) {
    head_ += byte;
    if (head_.ends_with(kHarmonyMessage)) return begin_message(sink);
    const std::string_view head = std::string_view(head_).substr(
        std::min(head_.find_first_not_of(kReplySpace), head_.size()));
    const auto may_begin = [&](std::string_view first) {
      return head.starts_with(first) || first.starts_with(head);
    };
    const bool is_head = may_begin(kHarmonyStart) || may_begin(kHarmonyChannel) || may_begin("to=");
    if (is_head && head_.size() <= kLongestHarmonyHead) return;
    // No head at all: the model writes without channels.
    any_message_ = true;
    in_head_ = false;
    kind_ = Kind::kContent;
    for (const char one : std::exchange(head_, {})) push(one, sink);
  }

  void begin_message(ReplySink& sink) {
    any_message_ = true;
    in_head_ = false;
    const std::string channel = word_after(kHarmonyChannel), recipient = word_after("to=");
    head_.clear();
    kind_ = channel == "analysis" ? Kind::kReasoning : Kind::kContent;
    if (recipient.empty() || !calls_) return;
    kind_ = Kind::kCall;
    constexpr std::string_view kNamespace = "functions.";
    std::string_view name = recipient;
    if (name.starts_with(kNamespace)) name.remove_prefix(kNamespace.size());
    sink.begin_call(name);
    arguments_.emplace();
    any_argument_ = false;
  }

  // Up to white space or the next marker.
  std::string word_after(std::string_view text) const {
    const std::size_t at = head_.find(text);
    if (at == std::string::npos) return {};
    const std::string_view rest = std::string_view(head_).substr(at + text.size());
    return std::string(rest.substr(0, rest.find_first_of(" \t\r\n<")));
  }

  void push_body(std::string_view text, ReplySink& sink) {
    switch (kind_) {
      case Kind::kContent:
        return sink.content(text);
      case Kind::kReasoning:
        return sink.reasoning(text);
      case Kind::kCall:
        for (const char byte : text) {
          const bool space = is_reply_space(byte);
          // White space around the arguments is not part of them.
          if (space && (!any_argument_ || arguments_->state() == JsonScanner::State::kDone))
            continue;
          if (arguments_->state() == JsonScanner::State::kOpen)
            arguments_->push(byte);
          else
            is_json_ = false;
          any_argument_ = true;
          sink.arguments(std::string_view(&byte, 1));
        }
    }
  }

  void end_message(ReplySink& sink) {
    if (kind_ != Kind::kCall) return;
    if (!any_argument_) sink.arguments("{}");
    const bool is_json =
        is_json_ && arguments_->is_clean() && arguments_->state() == JsonScanner::State::kDone;
    sink.end_call(is_json || !any_argument_ ? std::string_view() : kArgumentsNotJson);
    is_json_ = true;
    kind_ = Kind::kContent;
  }

  const bool calls_;
  bool in_head_ = true, any_message_ = false, any_argument_ = false, is_json_ = true;
  Kind kind_ = Kind::kContent;
  std::string head_;
  MarkerSearch body_end_{
      {kHarmonyStart, kHarmonyChannel, kHarmonyEnd, kHarmonyCall, kHarmonyReturn}};
  std::optional<JsonScanner> arguments_;
};

}  // namespace

const CallFormat& harmony_format() {
  static const CallFormat format{
      .name = "harmony",
      .markers = {kHarmonyStart, kHarmonyChannel, kHarmonyMessage, kHarmonyEnd, kHarmonyCall,
                  kHarmonyReturn, kHarmonyConstrain},
      .fits =
          [](std::string_view source) {
            return mentions(source, kHarmonyChannel) && mentions(source, kHarmonyMessage);
          },
      .make_reader = [](std::span<const Tool> tools) -> std::unique_ptr<CallReader> {
        return std::make_unique<HarmonyReply>(!tools.empty());
      },
      .calls_open = kHarmonyCallHead,
      .call_rule =
          [](const Tool& tool, const FixedText& fixed) {
            return fmt::format("{} ({} | {})? {} {}", fixed(tool.name), fixed(" <|constrain|>json"),
                               fixed(" json"), fixed(kHarmonyMessage), arguments_rule(tool));
          },
      .trigger = kHarmonyCallHead,
      .several = false};
  return format;
}

}  // namespace hearth
