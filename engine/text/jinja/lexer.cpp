#include "engine/text/jinja/lexer.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "engine/text/jinja/budget.h"
#include "engine/text/jinja/characters.h"

namespace hearth::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_one_of(char c, std::string_view set) { return set.find(c) != set.npos; }
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

// The digit's value in bases up to 16; 16 where it is none.
unsigned digit_value(char c) {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? static_cast<unsigned>(lower - 'a' + 10) : 16;
}

class Lexer {
 public:
  Lexer(std::string_view source, std::deque<std::string>& strings)
      : source_(source), strings_(strings) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) text_and_tag();
    add(Token::Kind::kEnd, {});
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return source_.substr(at_); }
  bool next_is(std::string_view text) const { return rest().starts_with(text); }
  void add(Token::Kind kind, std::string_view text) { tokens_.push_back({kind, line_, text}); }
  [[noreturn]] void wrong(std::string reason) const { fail(std::move(reason), line_); }

  void skip(std::size_t bytes) {
    line_ += static_cast<std::uint32_t>(std::ranges::count(source_.substr(at_, bytes), '\n'));
    at_ += bytes;
  }
  void skip_space() {
    while (at_ < source_.size()) {
      const Character next = character_at(source_, at_);
      if (!is_space(next.code)) return;
      skip(next.bytes);
    }
  }

  std::size_t find_tag() const {
    for (std::size_t at = at_; (at = source_.find('{', at)) != source_.npos; ++at)
      if (at + 1 < source_.size() && is_one_of(source_[at + 1], "{%#")) return at;
    return source_.npos;
  }

  // '-' or '+' after an opening mark, or 0.
  char take_sign() {
    if (!next_is("-") && !next_is("+")) return 0;
    return source_[at_++];
  }

  // Emits text, without the white space that the tag after it takes away.
  void emit(std::string_view text, char sign, bool is_output) {
    std::string_view kept = text;
    if (sign == '-') {
      kept = strip_right(text);
    } else if (sign != '+' && !is_output) {
      const std::size_t line = text.rfind('\n') + 1;  // 0: no line break
      const bool starts_line = line > 0 || line_starts_;
      if (starts_line && strip_right(text.substr(line)).empty()) kept = text.substr(0, line);
    }
    if (!kept.empty()) add(Token::Kind::kText, kept);
  }

  void text_and_tag() {
    const std::size_t tag = find_tag();
    const std::string_view text = source_.substr(at_, tag - at_);
    if (tag == source_.npos) {
      add(Token::Kind::kText, text);
      at_ = source_.size();
      return;
    }
    const char kind = source_[tag + 1];
    const std::size_t behind = tag + 2;
    const bool has_sign =
        behind < source_.size() && (source_[behind] == '-' || source_[behind] == '+');
    emit(text, has_sign ? source_[behind] : char{0}, kind == '{');
    skip(text.size() + 2 + (has_sign ? 1 : 0));
    if (kind == '#') {
      comment();
    } else if (kind == '{') {
      add(Token::Kind::kOpenOutput, "{{");
      tag_tokens(false);
    } else if (!raw()) {
      add(Token::Kind::kOpenBlock, "{%");
      tag_tokens(true);
    }
    line_starts_ = source_[at_ - 1] == '\n';
  }

  // At the closing mark of a block or comment: takes it and the white space that goes with it.
  bool take_close(std::string_view mark, bool takes_line_break) {
    if (next_is("-") && rest().substr(1).starts_with(mark)) {
      skip(1 + mark.size());
      skip_space();
    } else if (takes_line_break && next_is("+") && rest().substr(1).starts_with(mark)) {
      skip(1 + mark.size());
    } else if (next_is(mark)) {
      skip(mark.size());
      if (takes_line_break && next_is("\n")) skip(1);
    } else {
      return false;
    }
    return true;
  }

  void comment() {
    const std::size_t end = source_.find("#}", at_);
    if (end == source_.npos) wrong("a comment does not end");
    // A sign in front of the mark belongs to the mark.
    const bool has_sign = end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+');
    skip(end - at_ - (has_sign ? 1 : 0));
    take_close("#}", true);
  }

  // {% raw %} ... {% endraw %}, after its opening mark; false where it is another block.
  bool raw() {
    const std::size_t begin = at_;
    const std::uint32_t line = line_;
    skip_space();
    if (next_is("raw")) {
      skip(3);
      skip_space();
      if (take_close("%}", false)) {
        raw_text(line);
        return true;
      }
    }
    at_ = begin;
    line_ = line;
    return false;
  }

  void raw_text(std::uint32_t line) {
    const std::size_t begin = at_;
    line_starts_ = source_[at_ - 1] == '\n';
    for (std::size_t tag = begin; (tag = source_.find("{%", tag)) != source_.npos; tag += 2) {
      at_ = tag + 2;
      const char sign = take_sign();
      skip_space();
      if (!next_is("endraw")) continue;
      at_ += 6;
      skip_space();
      const std::size_t close = at_;
      if (!take_close("%}", true)) continue;
      // Lines were only counted after the tag so far.
      const std::size_t end = at_;
      at_ = begin;
      line_ = line;
      emit(source_.substr(begin, tag - begin), sign, false);
      skip(close - begin);
      skip(end - close);
      return;
    }
    fail("a raw block does not end", line);
  }

  void tag_tokens(bool is_block) {
    const std::string_view close = is_block ? "%}" : "}}";
    std::vector<char> open;
    const std::uint32_t line = line_;
    while (true) {
      if (at_ >= source_.size()) fail("a tag does not end", line);
      if (open.empty()) {
        const std::uint32_t here = line_;
        if (take_close(close, is_block)) {
          tokens_.push_back(
              {is_block ? Token::Kind::kCloseBlock : Token::Kind::kCloseOutput, here, close});
          return;
        }
      }
      token(open);
    }
  }

  void token(std::vector<char>& open) {
    const Character next = character_at(source_, at_);
    const char c = source_[at_];
    if (is_space(next.code)) {
      skip(next.bytes);
    } else if (is_digit(c)) {
      number();
    } else if (is_name_start(c)) {
      std::size_t end = at_;
      while (end < source_.size() && is_name_part(source_[end])) ++end;
      add(Token::Kind::kName, source_.substr(at_, end - at_));
      at_ = end;
    } else if (c == '\'' || c == '"') {
      string(c);
    } else {
      symbol(open);
    }
  }

  void number() {
    std::size_t end = at_;
    const auto digits = [&](unsigned base) {
      while (end < source_.size() && (digit_value(source_[end]) < base ||
                                      (source_[end] == '_' && end + 1 < source_.size() &&
                                       digit_value(source_[end + 1]) < base)))
        ++end;
    };
    const auto digit_at = [&](std::size_t i) { return i < source_.size() && is_digit(source_[i]); };
    Token::Kind kind = Token::Kind::kInteger;
    const char prefix = source_.size() > at_ + 1 ? static_cast<char>(source_[at_ + 1] | 0x20) : ' ';
    if (source_[at_] == '0' && (prefix == 'x' || prefix == 'o' || prefix == 'b')) {
      end += 2;
      digits(prefix == 'x' ? 16 : prefix == 'o' ? 8 : 2);
    } else {
      const bool behind_dot = at_ > 0 && source_[at_ - 1] == '.';
      digits(10);
      if (!behind_dot && end < source_.size() && source_[end] == '.' && digit_at(end + 1)) {
        kind = Token::Kind::kFloat;
        ++end;
        digits(10);
      }
      if (!behind_dot && end < source_.size() && (source_[end] | 0x20) == 'e') {
        const bool sign =
            end + 1 < source_.size() && (source_[end + 1] == '+' || source_[end + 1] == '-');
        if (digit_at(end + 1 + (sign ? 1 : 0))) {
          kind = Token::Kind::kFloat;
          end += sign ? 2 : 1;
          digits(10);
        }
      }
    }
    if (end < source_.size() && is_name_part(source_[end]))
      wrong(fmt::format("{} is not a number", source_.substr(at_, end + 1 - at_)));
    add(kind, source_.substr(at_, end - at_));
    at_ = end;
  }

  void string(char quote) {
    std::size_t end = at_ + 1;
    bool escapes = false;
    while (end < source_.size() && source_[end] != quote) {
      if (source_[end] == '\\') {
        escapes = true;
        ++end;
      }
      ++end;
    }
    if (end >= source_.size()) wrong("a string does not end");
    const std::string_view inside = source_.substr(at_ + 1, end - at_ - 1);
    add(Token::Kind::kString,
        escapes ? std::string_view(strings_.emplace_back(unescaped(inside))) : inside);
    skip(end + 1 - at_);
  }

  // Python's escapes. One that Python does not know stays as it is.
  std::string unescaped(std::string_view text) const {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\') {
        result += text[i];
        continue;
      }
      const char c = text[++i];
      constexpr std::string_view kNames = "abfnrtv\\'\"";
      constexpr std::string_view kMeans = "\a\b\f\n\r\t\v\\'\"";
      if (const std::size_t known = kNames.find(c); known != kNames.npos) {
        result += kMeans[known];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const std::size_t count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        append_code(result, number_of(text.substr(i + 1, count), 16, count));
        i += count;
      } else if (c >= '0' && c <= '7') {
        std::size_t count = 1;
        while (count < 3 && i + count < text.size() && digit_value(text[i + count]) < 8) ++count;
        append_code(result, number_of(text.substr(i, count), 8, count));
        i += count - 1;
      } else if (c == 'N') {
        wrong("characters by name (\\N{...}) are not supported");
      } else if (c != '\n') {  // a line break after a backslash is dropped
        result += '\\';
        result += c;
      }
    }
    return result;
  }

  char32_t number_of(std::string_view digits, unsigned base, std::size_t count) const {
    char32_t code = 0;
    for (const char c : digits) {
      if (digit_value(c) >= base) digits = {};
      code = code * base + digit_value(c);
    }
    if (digits.size() != count) wrong("an escape sequence in a string is cut short");
    return code;
  }

  void append_code(std::string& text, char32_t code) const {
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      wrong("an escape sequence in a string is no character");
    append_character(text, code);
  }

  void symbol(std::vector<char>& open) {
    constexpr std::array<std::string_view, 6> kTwo = {"//", "**", "==", "!=", ">=", "<="};
    constexpr std::string_view kOne = "+-*/%~()[]{}|.,:=<>;";
    const char c = source_[at_];
    std::size_t bytes = 1;
    for (const std::string_view two : kTwo)
      if (next_is(two)) bytes = 2;
    if (bytes == 1 && !is_one_of(c, kOne)) wrong(fmt::format("unexpected '{}'", c));
    if (c == '(' || c == '[' || c == '{') {
      open.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) wrong(fmt::format("unexpected '{}'", c));
      if (open.back() != c) wrong(fmt::format("unexpected '{}', expected '{}'", c, open.back()));
      open.pop_back();
    }
    add(Token::Kind::kOperator, source_.substr(at_, bytes));
    at_ += bytes;
  }

  std::string_view source_;
  std::deque<std::string>& strings_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  bool line_starts_ = true;  // the text that follows begins a line
};

}  // namespace

std::string normal_source(std::string_view source) {
  std::string result;
  result.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      result += source[i];
      continue;
    }
    result += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (result.ends_with('\n')) result.pop_back();
  return result;
}

std::vector<Token> lex(std::string_view source, std::deque<std::string>& strings) {
  return Lexer(source, strings).run();
}

}  // namespace hearth::jinja
