#include "ui/data/chat_parts.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

namespace hearth {
namespace {

// The dashboard has no tools. Calls between markers are read whatever they call; a bare JSON object
// counts only if it names a tool, which none does.
std::span<const Tool> no_known_tool() {
  static const std::array<Tool, 1> tools;
  return tools;
}

ReplyFormat format_of(const ChatReplyForm& form) {
  ReplyFormat format;
  if (const CallFormat* calls = find_call_format(form.calls)) format.calls = calls;
  if (!form.reasoning.empty()) format.reasoning = find_reasoning(form.reasoning);
  return format;
}

using OrderedJson = nlohmann::ordered_json;

constexpr size_t kLongestListLine = 40;  // characters

std::string scalar_text(const OrderedJson& value) {
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

// One member per line, except for short lists of scalars.
std::string indented(const OrderedJson& value, size_t depth) {
  if (!value.is_structured() || value.empty()) return scalar_text(value);
  const auto is_scalar = [](const OrderedJson& one) { return !one.is_structured(); };
  const bool in_line = value.is_array() && std::ranges::all_of(value, is_scalar) &&
                       scalar_text(value).size() <= kLongestListLine;
  const std::string margin(2 * depth, ' ');
  std::string text;
  for (const auto& [key, member] : value.items()) {
    if (!text.empty()) text += in_line ? ", " : ",";
    if (!in_line) text += "\n" + margin + "  ";
    if (value.is_object()) text += scalar_text(OrderedJson(key)) + ": ";
    text += indented(member, depth + 1);
  }
  if (!in_line) text += "\n" + margin;
  return value.is_array() ? "[" + text + "]" : "{" + text + "}";
}

// As people read them: JSON on several lines, anything else without the white space at its end.
std::string shown_arguments(std::string arguments) {
  const auto json = OrderedJson::parse(arguments, nullptr, /*allow_exceptions=*/false);
  if (!json.is_discarded()) return indented(json, 0);
  arguments.erase(arguments.find_last_not_of(kReplySpace) + 1);
  return arguments;
}

}  // namespace

ChatReplyForm reply_form(const ReplyStyle& style, std::string_view prompt_end) {
  const ReasoningMarkers* const reasoning = style.format.reasoning;
  ChatReplyForm form{.calls = std::string(style.format.calls->name)};
  if (reasoning == nullptr) return form;
  form.reasoning = reasoning->open;
  form.begins_in_reasoning = ends_in_reasoning(*reasoning, prompt_end);
  return form;
}

void ChatParts::read(const ChatReply& reply, bool ended) {
  if (!parser_) {
    ReplyParser::Options options{.format = format_of(reply.form),
                                 .begins_in_reasoning = reply.form.begins_in_reasoning};
    if (!reply.form.calls.empty()) options.tools = no_known_tool();
    parser_.emplace(options);
  }
  // One byte at a time, so that an event's text ends where reading has got to.
  while (read_ < reply.text.size()) {
    const std::string_view byte(&reply.text[read_++], 1);
    take(parser_->push(byte), reply.text);
  }
  if (!ended || std::exchange(ended_, true)) return;
  take(parser_->finish(), reply.text);
  if (!parts_.empty()) parts_.back().closed = true;
}

void ChatParts::take(const std::vector<ReplyEvent>& events, const std::string& text) {
  using Kind = ReplyEvent::Kind;
  for (const ReplyEvent& event : events) {
    switch (event.kind) {
      case Kind::kContent:
        add_text(ChatPart::Kind::kText, event.text, text);
        break;
      case Kind::kReasoning:
        add_text(ChatPart::Kind::kReasoning, event.text, text);
        break;
      case Kind::kCallBegin:
        if (!parts_.empty()) parts_.back().closed = true;
        parts_.push_back({.kind = ChatPart::Kind::kCall, .name = event.text});
        break;
      case Kind::kArguments:
        parts_.back().arguments += event.text;
        break;
      case Kind::kCallEnd:
        parts_.back().warning = event.text;
        parts_.back().closed = true;
        parts_.back().arguments = shown_arguments(std::move(parts_.back().arguments));
        break;
    }
  }
}

// Events are pieces of the text, in its order, with markers and some white space left out.
void ChatParts::add_text(ChatPart::Kind kind, std::string_view added, const std::string& text) {
  if (added.empty() || added.size() > read_) return;
  const std::size_t begin = text.rfind(added, read_ - added.size());
  if (begin == std::string::npos) return;
  const std::size_t end = begin + added.size();
  if (!parts_.empty() && parts_.back().kind == kind) {
    ChatPart& last = parts_.back();
    const bool adjoins =
        begin >= last.end && text.find_first_not_of(kReplySpace, last.end) >= begin;
    if (adjoins) {
      last.end = end;
      return;
    }
  }
  if (!parts_.empty()) parts_.back().closed = true;
  parts_.push_back({.kind = kind, .begin = begin, .end = end});
}

std::vector<ChatPart> parts_of(const ChatReply& reply) {
  ChatParts parts;
  parts.read(reply, true);
  return parts.parts();
}

std::size_t tokens_in(const ChatReply& reply, const ChatPart& part) {
  std::size_t at = 0, count = 0;
  for (const ChatToken& token : reply.tokens) {
    const std::size_t begin = at;
    at += token.text.size();
    if (begin >= part.end) break;
    if (at > part.begin && at > begin) ++count;
  }
  return count;
}

std::string answer_text(const ChatReply& reply) {
  std::string answer;
  for (const ChatPart& part : parts_of(reply)) {
    if (part.kind != ChatPart::Kind::kText) continue;
    if (!answer.empty()) answer += '\n';
    answer += reply.text.substr(part.begin, part.end - part.begin);
  }
  return answer.empty() ? reply.text : answer;
}

}  // namespace hearth
