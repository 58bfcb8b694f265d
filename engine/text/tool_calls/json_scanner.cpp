#include "engine/text/tool_calls/json_scanner.h"

#include <fmt/format.h>

#include "engine/text/tool_calls/reply_sink.h"

namespace hearth {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool is_scalar_byte(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || c == 'E' || c == '+' || c == '-' || c == '.';
}

bool is_scalar(std::string_view text) {
  if (text == "true" || text == "false" || text == "null") return true;
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t before = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at - before;
  };
  if (at < text.size() && text[at] == '-') ++at;
  const bool zero = at < text.size() && text[at] == '0';
  const std::size_t whole = digits();
  if (whole == 0 || (zero && whole > 1)) return false;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (digits() == 0) return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

}  // namespace

JsonScanner::State JsonScanner::push(char byte) {
  member_ended_ = false;
  if (in_string_) return string_byte(byte);
  if (!scalar_.empty()) {
    if (is_scalar_byte(byte)) {
      scalar_ += byte;
      return state_;
    }
    in_member_ = closers_.size() > 1;
    if (!is_scalar(scalar_)) return invalid();
    scalar_.clear();
    end_value();
  }
  if (is_reply_space(byte)) {
    in_member_ = closers_.size() > 1;
    return state_;
  }
  return structure_byte(byte);
}

JsonScanner::State JsonScanner::string_byte(char byte) {
  const bool outer_key = string_is_key_ && closers_.size() == 1;
  if (escape_left_ > 0) {
    if (hex_) {
      if (!is_hex_digit(byte)) return invalid();
    } else if (byte == 'u') {
      hex_ = true;
      escape_left_ = 5;
    } else if (std::string_view("\"\\/bfnrt").find(byte) == std::string_view::npos) {
      return invalid();
    }
    --escape_left_;
    if (outer_key) key_ += byte;
    return state_;
  }
  if (byte == '"') {
    in_string_ = false;
    if (string_is_key_)
      expect_ = Expect::kColon;
    else
      end_value();
    return state_;
  }
  if (byte == '\\') {
    escape_left_ = 1;
    hex_ = false;
  } else if (static_cast<unsigned char>(byte) < 0x20) {
    clean_ = false;
  }
  if (outer_key) key_ += byte;
  return state_;
}

JsonScanner::State JsonScanner::structure_byte(char byte) {
  const bool inside_member = closers_.size() > 1;
  in_member_ = inside_member;
  switch (expect_) {
    case Expect::kObject:
      if (byte != '{') return invalid();
      closers_.push_back('}');
      expect_ = Expect::kKeyOrEnd;
      return state_;
    case Expect::kKeyOrEnd:
      if (byte == '}') return close(byte);
      [[fallthrough]];
    case Expect::kKey:
      if (byte != '"') return invalid();
      in_string_ = string_is_key_ = true;
      if (closers_.size() == 1) key_.clear();
      return state_;
    case Expect::kColon:
      if (byte != ':') return invalid();
      expect_ = Expect::kValue;
      return state_;
    case Expect::kValueOrEnd:
      if (byte == ']') return close(byte);
      [[fallthrough]];
    case Expect::kValue:
      in_member_ = true;
      return begin_value(byte);
    case Expect::kNext:
      if (byte != ',') return close(byte);
      expect_ = closers_.back() == '}' ? Expect::kKey : Expect::kValue;
      return state_;
  }
  return state_;
}

JsonScanner::State JsonScanner::begin_value(char byte) {
  if (byte == '"') {
    in_string_ = true;
    string_is_key_ = false;
  } else if (byte == '{' || byte == '[') {
    closers_.push_back(byte == '{' ? '}' : ']');
    expect_ = byte == '{' ? Expect::kKeyOrEnd : Expect::kValueOrEnd;
  } else if (is_scalar_byte(byte)) {
    scalar_ = byte;
  } else {
    return invalid();
  }
  return state_;
}

JsonScanner::State JsonScanner::close(char byte) {
  if (byte != closers_.back()) return invalid();
  closers_.pop_back();
  if (closers_.empty()) return state_ = State::kDone;
  end_value();
  return state_;
}

void JsonScanner::end_value() {
  expect_ = Expect::kNext;
  member_ended_ = closers_.size() == 1;
}

void append_json_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20)
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
          out += c;
    }
  }
}

}  // namespace hearth
