// What the readers of grammar files share: a position in the text, with lines for messages. Errors
// are thrown inside of a reader and returned by it.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "runtime/result.h"

namespace hearth::grammar {

struct ReadFailure {
  Error error;
};

class GrammarReader {
 public:
  explicit GrammarReader(std::string_view text) : text_(text) {}

  bool done() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  char next() {
    if (done()) fail("the text ends too early");
    return text_[at_++];
  }
  bool take(std::string_view part) {
    if (text_.compare(at_, part.size(), part) != 0) return false;
    at_ += part.size();
    return true;
  }
  std::string_view rest() const { return text_.substr(at_); }
  std::size_t at() const { return at_; }
  void move_to(std::size_t at) { at_ = at; }

  [[noreturn]] void fail(std::string_view reason, ErrorKind kind = ErrorKind::kInvalid) const {
    std::size_t line = 1;
    for (std::size_t i = 0; i < at_ && i < text_.size(); ++i) line += text_[i] == '\n';
    throw ReadFailure{Error{kind, fmt::format("grammar, line {}: {}", line, reason)}};
  }

  // The value of `digits` hexadecimal digits.
  char32_t hex(int digits);
  // A character after a backslash, as C has them, with \xHH, \uHHHH and \UHHHHHHHH.
  char32_t escaped();
  // One character of UTF-8.
  char32_t character();
  // A control token by its id, <[17]>; returns the id without leading zeros.
  std::string token_id();

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace hearth::grammar
