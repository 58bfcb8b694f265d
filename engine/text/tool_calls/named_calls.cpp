#include "engine/text/tool_calls/named_calls.h"

#include <utility>

namespace hearth {
namespace {

constexpr std::size_t kLongestHead = 256;  // a longer name is no name

std::string_view without_space(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kReplySpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kReplySpace) - first + 1);
}

}  // namespace

NamedCalls::NamedCalls(const NamedCallsShape& shape)
    : shape_(shape),
      text_({shape.open, shape.list_open, shape.list_close}),
      head_end_({shape.separator}),
      call_end_({shape.close.empty() ? shape.open : shape.close}) {}

void NamedCalls::push(char byte, ReplySink& sink) {
  switch (place_) {
    case Place::kText:
      return push_text(byte, sink);
    case Place::kHead:
    case Place::kNameLine:
      return push_head(byte, sink);
    case Place::kBefore:
      return push_before(byte, sink);
    case Place::kArguments:
      return push_arguments(byte, sink);
    case Place::kBroken: {
      std::string text;
      const bool closed = call_end_.push(byte, text).has_value();
      sink.arguments(text);
      if (!closed) return;
      sink.end_call(kArgumentsNotJson);
      if (shape_.close.empty()) {
        seen_ = shape_.open;
        head_.clear();
        place_ = Place::kHead;
      } else {
        place_ = Place::kText;
      }
      return;
    }
    case Place::kAfter: {
      std::string ignored;
      if (call_end_.push(byte, ignored)) place_ = Place::kText;
      return;
    }
  }
}

void NamedCalls::push_text(char byte, ReplySink& sink) {
  std::string text;
  const auto marker = text_.push(byte, text);
  sink.content(text);
  if (!marker || *marker != 0) return;
  seen_ = shape_.open;
  head_.clear();
  place_ = Place::kHead;
}

void NamedCalls::push_head(char byte, ReplySink& sink) {
  seen_ += byte;
  if (place_ == Place::kNameLine) {
    if (byte == '\n') return begin(head_, sink);
    head_ += byte;
  } else if (head_end_.push(byte, head_)) {
    if (shape_.word_before_name.empty() || without_space(head_) != shape_.word_before_name)
      return begin(head_, sink);
    head_.clear();
    place_ = Place::kNameLine;
  }
  if (seen_.size() > kLongestHead) no_call(sink);
}

void NamedCalls::begin(std::string_view head, ReplySink& sink) {
  std::string_view name = without_space(head);
  if (shape_.name_of != nullptr) name = shape_.name_of(name);
  if (name.empty()) return no_call(sink);
  sink.begin_call(name);
  before_.clear();
  place_ = Place::kBefore;
}

// The bytes that looked like a call are content.
void NamedCalls::no_call(ReplySink& sink) {
  sink.content(std::exchange(seen_, {}));
  head_end_.finish();
  place_ = Place::kText;
}

// A call without arguments may close at once, and the arguments may be fenced as code.
void NamedCalls::push_before(char byte, ReplySink& sink) {
  before_ += byte;
  if (byte == '{') {
    arguments_.emplace();
    place_ = Place::kArguments;
    return push_arguments(byte, sink);
  }
  const std::string_view text = without_space(before_);
  if (text.empty() || std::string_view("```json").starts_with(text)) return;
  if (!shape_.close.empty() && shape_.close.starts_with(text)) {
    if (text != shape_.close) return;
    sink.arguments("{}");
    sink.end_call();
    place_ = Place::kText;
    return;
  }
  place_ = Place::kBroken;
  for (const char one : std::exchange(before_, {})) push(one, sink);
}

void NamedCalls::push_arguments(char byte, ReplySink& sink) {
  const JsonScanner::State state = arguments_->push(byte);
  if (state == JsonScanner::State::kInvalid) {
    place_ = Place::kBroken;
    return push(byte, sink);
  }
  sink.arguments(std::string_view(&byte, 1));
  if (state != JsonScanner::State::kDone) return;
  sink.end_call(arguments_->is_clean() ? std::string_view() : kArgumentsNotJson);
  place_ = shape_.close.empty() ? Place::kText : Place::kAfter;
}

void NamedCalls::finish(ReplySink& sink) {
  switch (place_) {
    case Place::kText:
      return sink.content(text_.finish());
    case Place::kHead:
    case Place::kNameLine:
      return sink.content(seen_);
    case Place::kBefore:
      if (sink.is_cut_off()) return sink.end_call(kCallCutOff);
      sink.arguments("{}");
      return sink.end_call();
    case Place::kArguments:
      return sink.end_call(kCallCutOff);
    case Place::kBroken:
      sink.arguments(call_end_.finish());
      return sink.end_call(kArgumentsNotJson);
    case Place::kAfter:
      return;
  }
}

}  // namespace hearth
