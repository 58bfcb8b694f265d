#include "engine/text/tool_calls/reply_sink.h"

namespace hearth {
void ReplySink::add(ReplyEvent::Kind kind, std::string_view text) {
  if (text.empty()) return;
  any_content_ |= kind == ReplyEvent::Kind::kContent;
  const std::uint32_t call = kind == ReplyEvent::Kind::kArguments ? begun_calls_ - 1 : 0;
  if (!events_.empty() && events_.back().kind == kind && events_.back().call == call)
    events_.back().text += text;
  else
    events_.push_back({kind, call, std::string(text)});
}

// Adds the text without white space before it, if that is to be skipped, or after it, until more
// follows.
void ReplySink::add_trimmed(ReplyEvent::Kind kind, std::string_view text) {
  if (skips_space_) {
    const std::size_t begin = text.find_first_not_of(kReplySpace);
    if (begin == std::string_view::npos) return;
    text.remove_prefix(begin);
    skips_space_ = false;
  }
  const std::size_t last = text.find_last_not_of(kReplySpace);
  if (last == std::string_view::npos) {
    space_ += text;
    return;
  }
  add(kind, std::exchange(space_, {}));
  add(kind, text.substr(0, last + 1));
  space_ = text.substr(last + 1);
}

void ReplySink::content(std::string_view text) {
  if (text.empty()) return;
  if (is_cut_off_ && text.size() >= shortest_dropped_) {
    space_.clear();
    return;
  }
  if (in_reasoning_) end_reasoning();
  add_trimmed(ReplyEvent::Kind::kContent, text);
  if (!calls_) add(ReplyEvent::Kind::kContent, std::exchange(space_, {}));
}

void ReplySink::reasoning(std::string_view text) {
  if (text.empty()) return;
  if (!in_reasoning_) {
    add(ReplyEvent::Kind::kContent, std::exchange(space_, {}));
    in_reasoning_ = true;
    skips_space_ = true;
  }
  add_trimmed(ReplyEvent::Kind::kReasoning, text);
}

void ReplySink::end_reasoning() {
  in_reasoning_ = false;
  space_.clear();
  skips_space_ = true;
}

void ReplySink::begin_call(std::string_view name) {
  space_.clear();
  in_reasoning_ = false;
  in_call_ = true;
  events_.push_back({ReplyEvent::Kind::kCallBegin, begun_calls_++, std::string(name)});
}

void ReplySink::arguments(std::string_view text) { add(ReplyEvent::Kind::kArguments, text); }

void ReplySink::end_call(std::string_view warning) {
  in_call_ = false;
  skips_space_ = true;
  events_.push_back({ReplyEvent::Kind::kCallEnd, begun_calls_ - 1, std::string(warning)});
}

void ReplySink::finish() {
  // White space alone is no answer: a call would have followed.
  const bool is_answer = any_content_ || !is_cut_off_;
  if (!in_reasoning_ && is_answer) add(ReplyEvent::Kind::kContent, space_);
  space_.clear();
}

}  // namespace hearth
