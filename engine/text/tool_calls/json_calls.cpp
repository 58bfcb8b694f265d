#include "engine/text/tool_calls/json_calls.h"

#include <algorithm>
#include <utility>

namespace hearth {

JsonCalls::JsonCalls(JsonCallsShape shape, std::span<const Tool> tools)
    : shape_(std::move(shape)), tools_(tools), opens_(shape_.opens), closes_({shape_.close}) {}

void JsonCalls::push(char byte, ReplySink& sink) {
  switch (place_) {
    case Place::kText:
      return push_text(byte, sink);
    case Place::kBetween:
      return push_between(byte, sink);
    case Place::kObject:
      return push_object(byte, sink);
    case Place::kBroken: {
      std::string text;
      const bool closed = closes_.push(byte, text).has_value();
      sink.arguments(text);
      if (!closed) return;
      sink.end_call(kArgumentsNotJson);
      place_ = Place::kText;
    }
  }
}

void JsonCalls::push_text(char byte, ReplySink& sink) {
  if (shape_.bare && at_start_ && (byte == '{' || byte == '[')) {
    at_start_ = false;
    is_bare_ = true;
    any_call_ = false;
    place_ = Place::kBetween;
    return push_between(byte, sink);
  }
  if (!is_reply_space(byte)) at_start_ = false;
  std::string text;
  const auto marker = opens_.push(byte, text);
  sink.content(text);
  if (!marker) return;
  opened_ = shape_.opens[*marker];
  any_call_ = is_bare_ = false;
  place_ = Place::kBetween;
}

void JsonCalls::push_between(char byte, ReplySink& sink) {
  if (gap_.empty()) {
    if (byte == '{') {
      object_.emplace(is_bare_ ? tools_ : std::span<const Tool>());
      place_ = Place::kObject;
      return push_object(byte, sink);
    }
    // What separates and surrounds the calls of a list.
    if (is_reply_space(byte) || std::string_view("[],;").find(byte) != std::string_view::npos) {
      if (!any_call_) opened_ += byte;
      return;
    }
  }
  gap_ += byte;
  const auto begins = [this](std::string_view marker) { return marker.starts_with(gap_); };
  if (gap_ == shape_.close) {
    if (!any_call_) sink.content(opened_ + gap_);
    opened_.clear();
    gap_.clear();
    place_ = Place::kText;
  } else if (std::ranges::find(shape_.opens, gap_) != shape_.opens.end()) {
    if (!any_call_) opened_ += gap_;
    gap_.clear();
  } else if (!begins(shape_.close) && std::ranges::none_of(shape_.opens, begins)) {
    leave(sink);
  }
}

// Neither another call nor the end of the list: what follows is text.
void JsonCalls::leave(ReplySink& sink) {
  place_ = Place::kText;
  if (!any_call_) sink.content(opened_);
  opened_.clear();
  for (const char byte : std::exchange(gap_, {})) push(byte, sink);
}

void JsonCalls::push_object(char byte, ReplySink& sink) {
  switch (object_->push(byte, sink)) {
    case CallObject::State::kOpen:
      return;
    case CallObject::State::kDone:
      any_call_ = true;
      opened_.clear();
      place_ = Place::kBetween;
      return;
    case CallObject::State::kBroken:
      any_call_ = true;
      opened_.clear();
      closes_ = MarkerSearch({shape_.close});
      place_ = Place::kBroken;
      return;
    case CallObject::State::kNotCall:
      place_ = Place::kText;
      sink.content(std::exchange(opened_, {}) + object_->text());
      return;
  }
}

void JsonCalls::finish(ReplySink& sink) {
  switch (place_) {
    case Place::kText:
      return sink.content(opens_.finish());
    case Place::kBetween:
      if (!any_call_) sink.content(opened_);
      return sink.content(gap_);
    case Place::kObject:
      if (object_->begun()) return sink.end_call(kCallCutOff);
      return sink.content(opened_ + object_->text());
    case Place::kBroken:
      sink.arguments(closes_.finish());
      return sink.end_call(kArgumentsNotJson);
  }
}

}  // namespace hearth
