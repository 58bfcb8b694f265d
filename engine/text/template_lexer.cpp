#include "engine/text/template_lexer.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "engine/weights/in_quotes.h"

namespace hearth {
namespace {

using Kind = TemplateToken::Kind;

// minja recurses for every operator and bracket.
constexpr std::size_t kMaxTokens = 400;
constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kMaxWordBytes = 128;
constexpr std::size_t kMaxDigits = 9;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  Lexer(std::string_view source, std::size_t at, std::string_view close)
      : source_(source), at_(at), close_(close) {}

  Result<TemplateTag> run() {
    while (true) {
      while (at_ < source_.size() && std::isspace(static_cast<unsigned char>(source_[at_]))) ++at_;
      if (at_ == source_.size()) return invalid("a tag does not end");
      if (open_.empty() && at_end()) break;
      if (tag_.tokens.size() == kMaxTokens)
        return invalid(fmt::format("a tag has more than {} parts", kMaxTokens));
      HEARTH_TRY(next());
    }
    tag_.end = at_ + (source_.substr(at_).starts_with(close_) ? 0 : 1) + close_.size();
    return std::move(tag_);
  }

 private:
  bool at_end() const {
    std::string_view rest = source_.substr(at_);
    if (rest.starts_with('-') || rest.starts_with('~')) rest.remove_prefix(1);
    return rest.starts_with(close_);
  }

  Status next() {
    const char c = source_[at_];
    if (c == '"' || c == '\'') return string(c);
    if (is_digit(c)) return number();
    if (is_word(c)) return word();
    return symbol(c);
  }

  void push(Kind kind, std::size_t bytes) {
    tag_.tokens.push_back({kind, source_.substr(at_, bytes), static_cast<int>(open_.size())});
    at_ += bytes;
  }

  Status string(char quote) {
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return invalid("a text in quotes does not end");
    push(Kind::kString, end + 1 - at_);
    return {};
  }

  Status number() {
    std::size_t end = at_;
    while (end < source_.size() && is_digit(source_[end])) ++end;
    if (end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1]))
      for (++end; end < source_.size() && is_digit(source_[end]);) ++end;
    if (end - at_ > kMaxDigits) return invalid("a number is too long");
    if (end < source_.size() && is_word(source_[end])) return invalid("a number ends in a letter");
    push(Kind::kNumber, end - at_);
    return {};
  }

  Status word() {
    std::size_t end = at_;
    while (end < source_.size() && is_word(source_[end])) ++end;
    const std::string_view text = source_.substr(at_, end - at_);
    if (text.size() > kMaxWordBytes || text.starts_with("hearth_"))
      return invalid(fmt::format("a name that cannot be used: {}", in_quotes(text)));
    push(Kind::kWord, text.size());
    return {};
  }

  Status symbol(char c) {
    constexpr std::string_view kOpening = "([{", kClosing = ")]}";
    const std::string_view rest = source_.substr(at_);
    for (const std::string_view two : {"==", "!=", "<=", ">=", "**", "//"}) {
      if (!rest.starts_with(two)) continue;
      push(Kind::kSymbol, 2);
      return {};
    }
    if (const auto kind = kOpening.find(c); kind != std::string_view::npos) {
      if (open_.size() == kMaxDepth)
        return invalid(fmt::format("more than {} brackets in each other", kMaxDepth));
      push(Kind::kSymbol, 1);
      open_ += kClosing[kind];
      return {};
    }
    if (kClosing.find(c) != std::string_view::npos) {
      if (open_.empty() || open_.back() != c)
        return invalid(fmt::format("a '{}' that closes nothing", c));
      open_.pop_back();
      push(Kind::kSymbol, 1);
      return {};
    }
    if (std::string_view("+-*/%|~,.:=<>").find(c) == std::string_view::npos)
      return invalid(fmt::format("{} has no meaning in a tag", in_quotes({&c, 1})));
    push(Kind::kSymbol, 1);
    return {};
  }

  std::string_view source_;
  std::size_t at_;
  std::string_view close_;
  TemplateTag tag_;
  std::string open_;  // the brackets that must close, innermost last
};

}  // namespace

Result<TemplateTag> lex_template_tag(std::string_view source, std::size_t at,
                                     std::string_view close) {
  return Lexer(source, at, close).run();
}

}  // namespace hearth
