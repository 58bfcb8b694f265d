#include "engine/text/tool_calls/parameter_calls.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

#include "engine/text/tool_calls/json_scanner.h"

namespace hearth {
namespace {

constexpr std::size_t kLongestName = 256;  // a longer one is no name

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kReplySpace);
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(kReplySpace) - first + 1));
}

// In the order in which name_end_ and parts_ have them.
enum Part : std::size_t { kNextKey, kClose, kNameEnd };

}  // namespace

ParameterCalls::ParameterCalls(const ParameterCallsShape& shape, std::span<const Tool> tools)
    : shape_(shape),
      tools_(tools),
      text_({shape.open, shape.list_open, shape.list_close}),
      name_end_({shape.key, shape.close, shape.open_end}),
      parts_({shape.key, shape.close}),
      key_end_({shape.key_end}),
      value_({shape.value}),
      value_end_({shape.value_end}) {}

void ParameterCalls::push(char byte, ReplySink& sink) {
  std::string text;
  switch (place_) {
    case Place::kText:
      return push_text(byte, sink);
    case Place::kName:
      return push_name(byte, sink);
    case Place::kArguments:
      if (const auto part = parts_.push(byte, text)) next_part(*part, sink);
      return;
    case Place::kKey:
      if (!key_end_.push(byte, key_name_)) return;
      if (shape_.value.empty()) return begin_value(sink);
      place_ = Place::kBeforeValue;
      return;
    case Place::kBeforeValue:
      if (value_.push(byte, text)) begin_value(sink);
      return;
    case Place::kValue: {
      const bool ended = value_end_.push(byte, text).has_value();
      add_to_value(text, sink);
      if (ended) end_value(sink);
      return;
    }
  }
}

void ParameterCalls::push_text(char byte, ReplySink& sink) {
  std::string text;
  const auto marker = text_.push(byte, text);
  sink.content(text);
  if (!marker || *marker != 0) return;
  seen_ = shape_.open;
  name_.clear();
  place_ = Place::kName;
}

void ParameterCalls::push_name(char byte, ReplySink& sink) {
  seen_ += byte;
  const auto part = name_end_.push(byte, name_);
  name_.erase(0, std::min(name_.find_first_not_of(kReplySpace), name_.size()));
  // A line break before the name does not end it.
  const bool goes_on = !part || (*part == kNameEnd && name_.empty());
  if (goes_on && seen_.size() <= kLongestName) return;
  name_ = trimmed(name_);
  if (goes_on || name_.empty()) {
    name_end_.finish();
    place_ = Place::kText;
    return sink.content(std::exchange(seen_, {}));
  }
  sink.begin_call(name_);
  sink.arguments("{");
  any_argument_ = false;
  warning_.clear();
  next_part(*part, sink);
}

void ParameterCalls::next_part(std::size_t part, ReplySink& sink) {
  switch (part) {
    case kNextKey:
      key_name_.clear();
      place_ = Place::kKey;
      return;
    case kClose:
      sink.arguments("}");
      sink.end_call(warning_);
      place_ = Place::kText;
      return;
    default:
      place_ = Place::kArguments;
  }
}

void ParameterCalls::begin_value(ReplySink& sink) {
  key_name_ = trimmed(key_name_);
  std::string text = std::exchange(any_argument_, true) ? ", \"" : "\"";
  append_json_escaped(text, key_name_);
  sink.arguments(text + "\": ");
  kind_ = argument_kind(tools_, name_, key_name_);
  collected_.clear();
  value_begun_ = false;
  place_ = Place::kValue;
}

// Strings are passed on as they come, without the line breaks that surround a value on lines of its
// own. Everything else waits until it can be seen whether it is JSON.
void ParameterCalls::add_to_value(std::string_view text, ReplySink& sink) {
  if (text.empty()) return;
  collected_ += text;
  if (kind_ != ArgumentKind::kText) return;
  std::string quoted;
  if (!value_begun_) {
    value_begun_ = true;
    quoted = "\"";
    if (collected_.front() == '\n') collected_.erase(0, 1);
  }
  const bool keeps_last = collected_.ends_with('\n');
  append_json_escaped(quoted,
                      std::string_view(collected_).substr(0, collected_.size() - keeps_last));
  collected_ = keeps_last ? "\n" : "";
  sink.arguments(quoted);
}

void ParameterCalls::end_value(ReplySink& sink) {
  place_ = Place::kArguments;
  if (kind_ == ArgumentKind::kText) {
    sink.arguments(value_begun_ ? "\"" : "\"\"");
    return;
  }
  std::string value = trimmed(collected_);
  if (!nlohmann::json::accept(value)) {
    if (kind_ == ArgumentKind::kJson)
      warning_ = fmt::format("the argument '{}' is not JSON", key_name_);
    std::string quoted = "\"";
    append_json_escaped(quoted, value);
    value = quoted + "\"";
  }
  sink.arguments(value);
}

void ParameterCalls::finish(ReplySink& sink) {
  switch (place_) {
    case Place::kText:
      return sink.content(text_.finish());
    case Place::kName:
      return sink.content(seen_);
    case Place::kValue:
      add_to_value(value_end_.finish(), sink);
      if (kind_ != ArgumentKind::kText) sink.arguments(collected_);
      return sink.end_call(kCallCutOff);
    default:
      return sink.end_call(kCallCutOff);
  }
}

}  // namespace hearth
