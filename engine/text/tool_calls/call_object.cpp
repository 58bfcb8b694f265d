#include "engine/text/tool_calls/call_object.h"

#include <nlohmann/json.hpp>

namespace hearth {

CallObject::Member CallObject::member() const {
  const std::string& key = scanner_.key();
  if (!begun_ && (key == "name" || key == "tool_name")) return Member::kName;
  if (!has_arguments_ && (key == "arguments" || key == "parameters")) return Member::kArguments;
  return Member::kOther;
}

CallObject::State CallObject::push(char byte, ReplySink& sink) {
  if (!begun_) text_ += byte;
  const JsonScanner::State state = scanner_.push(byte);
  // A number ends with the byte after it, so the value ends first.
  if (scanner_.member_ended() && !scanner_.in_member()) end_member(sink);
  if (state == JsonScanner::State::kInvalid) {
    if (!begun_) return State::kNotCall;
    if (has_arguments_) {
      sink.end_call(not_object_ ? kArgumentsNotJson : std::string_view());
      return State::kDone;
    }
    // A string's bytes have been waiting for its end.
    if (in_value_ && is_text_) sink.arguments(value_);
    sink.arguments(std::string_view(&byte, 1));
    return State::kBroken;
  }
  if (scanner_.in_member() && member() != Member::kOther) {
    if (!in_value_) {
      in_value_ = true;
      value_.clear();
      is_text_ = byte == '"';
      if (member() == Member::kArguments) not_object_ = byte != '{';
    }
    // Arguments are passed on as they are written, unless they are JSON inside a string.
    if (member() == Member::kArguments && begun_ && !is_text_)
      sink.arguments(std::string_view(&byte, 1));
    else
      value_ += byte;
  }
  if (scanner_.member_ended() && scanner_.in_member()) end_member(sink);
  if (refused_) return State::kNotCall;
  if (state != JsonScanner::State::kDone) return State::kOpen;
  if (!begun_) return State::kNotCall;
  if (!has_arguments_) sink.arguments("{}");
  sink.end_call(not_object_ || !scanner_.is_clean() ? kArgumentsNotJson : std::string_view());
  return State::kDone;
}

void CallObject::end_member(ReplySink& sink) {
  if (!std::exchange(in_value_, false)) return;
  const Member ended = member();
  // Line breaks in strings are no JSON, but a name or arguments with some can still be read.
  std::string text = value_;
  if (is_text_) {
    const auto decoded = nlohmann::json::parse(value_, nullptr, false);
    if (decoded.is_string()) text = decoded.get<std::string>();
    if (ended == Member::kArguments) not_object_ = !nlohmann::json::accept(text);
  }
  if (ended == Member::kName) {
    if (!is_text_ || text.empty() || (!known_.empty() && find_tool(known_, text) == nullptr)) {
      refused_ = true;
      return;
    }
    begun_ = true;
    sink.begin_call(text);
    sink.arguments(waiting_);
    return;
  }
  has_arguments_ = true;
  if (!begun_)
    waiting_ = std::move(text);
  else if (is_text_)
    sink.arguments(text);
}

}  // namespace hearth
