#include "engine/text/template_guard.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "engine/text/template_lexer.h"
#include "engine/weights/in_quotes.h"

namespace hearth {
namespace {

using Kind = TemplateToken::Kind;
using Tokens = std::span<const TemplateToken>;

// Published templates have up to 30 KB. minja's time grows with the square of it.
constexpr std::size_t kMaxTemplateBytes = 64 * 1024;
// minja's regular expressions recurse for every character of a run of white space.
constexpr std::size_t kMaxSpaceBytes = 2000;
constexpr std::size_t kMaxBlocks = 48;

// To see whether a word comes next, minja searches the whole rest of the template for it. This
// comment behind every block has all it looks for, so that the search ends there; without it, the
// time to read a template grows with the square of its length.
constexpr std::string_view kLandmark =
    "{#a.b not in true null == ~ + * or and if else recursive {{}}#}";

template <std::size_t N>
bool is_one_of(const TemplateToken& token, const std::array<std::string_view, N>& words) {
  return token.kind == Kind::kWord && std::ranges::find(words, token.text) != words.end();
}

// Whether a bracket behind this token calls or indexes it.
bool ends_value(const TemplateToken& token) {
  constexpr std::array<std::string_view, 8> kOperators = {"in",   "not", "and", "or",
                                                          "else", "if",  "is",  "for"};
  if (token.kind == Kind::kSymbol) return token.is(")") || token.is("]") || token.is("}");
  return !is_one_of(token, kOperators);
}

bool is_small_integer(const TemplateToken& token) {
  return token.kind == Kind::kNumber && token.text.size() <= 4 &&
         token.text.find('.') == std::string_view::npos;
}

class Guard {
 public:
  explicit Guard(std::string_view source) : source_(source) {}

  Result<std::string> run() {
    if (source_.size() > kMaxTemplateBytes)
      return invalid(fmt::format("it has {} bytes, more than {}", source_.size(), kMaxTemplateBytes));
    while (at_ < source_.size()) {
      const Status status = step();
      if (status.ok()) continue;
      const auto line = std::count(source_.begin(), source_.begin() + at_, '\n') + 1;
      return invalid(fmt::format("line {}: {}", line, status.error().message));
    }
    if (!blocks_.empty())
      return invalid(fmt::format("a block {} does not end", in_quotes(blocks_.back())));
    return std::move(result_);
  }

 private:
  // Text up to a tag, or a tag.
  Status step() {
    const std::string_view rest = source_.substr(at_);
    if (rest.starts_with("{#")) return comment();
    if (rest.starts_with("{{")) return expression();
    if (rest.starts_with("{%")) return block();
    std::size_t end = 1;
    while (end < rest.size() &&
           !(rest[end] == '{' && end + 1 < rest.size() &&
             std::string_view("{%#").find(rest[end + 1]) != std::string_view::npos))
      ++end;
    HEARTH_TRY(check_space(rest.substr(0, end)));
    copy_to(at_ + end);
    return {};
  }

  static Status check_space(std::string_view text) {
    std::size_t run = 0;
    for (const char c : text) {
      run = std::isspace(static_cast<unsigned char>(c)) ? run + 1 : 0;
      if (run > kMaxSpaceBytes) return invalid("too much white space in a row");
    }
    return {};
  }

  // Only its line breaks are kept, for the sake of line numbers.
  Status comment() {
    const std::size_t end = source_.find("#}", at_ + 2);
    if (end == std::string_view::npos) return invalid("a comment does not end");
    std::string_view inside = source_.substr(at_ + 2, end - at_ - 2);
    const auto mark = [](char c) { return c == '-' || c == '~'; };
    result_ += "{#";
    if (!inside.empty() && mark(inside.front())) {
      result_ += inside.front();
      inside.remove_prefix(1);
    }
    const auto lines = static_cast<std::size_t>(std::ranges::count(inside, '\n'));
    if (lines > kMaxSpaceBytes) return invalid("a comment has too many lines");
    result_ += ' ';
    result_.append(lines, '\n');
    if (!inside.empty() && mark(inside.back())) result_ += inside.back();
    result_ += "#}";
    at_ = end + 2;
    return {};
  }

  // Reads the tag at at_, whose tokens follow `skip` characters and an optional '-' or '~'.
  Result<TemplateTag> tag(std::string_view close) {
    std::size_t begin = at_ + 2;
    if (begin < source_.size() && (source_[begin] == '-' || source_[begin] == '~')) ++begin;
    HEARTH_ASSIGN(TemplateTag read, lex_template_tag(source_, begin, close));
    HEARTH_TRY(check_space(source_.substr(at_, read.end - at_)));
    if (read.tokens.empty()) return invalid("an empty tag");
    HEARTH_TRY(check_tokens(read.tokens));
    return read;
  }

  Status expression() {
    keep_indentation();
    HEARTH_ASSIGN(const TemplateTag read, tag("}}"));
    HEARTH_TRY(wrap(read.tokens, "hearth_check"));
    copy_to(read.end);
    return {};
  }

  // minja drops white space that begins a line before {{ as well, where Jinja does so only before
  // blocks and comments. As the text of a tag it stays.
  void keep_indentation() {
    const std::size_t begin = result_.find_last_not_of(" \t") + 1;
    const bool starts_line = begin == 0 || result_[begin - 1] == '\n';
    if (!starts_line || begin == result_.size() || source_.substr(at_).starts_with("{{-")) return;
    const std::string_view before =
        std::string_view(result_).substr(0, result_.find_last_not_of(" \t\r\n") + 1);
    for (const std::string_view strips : {"-%}", "-}}", "-#}"})
      if (before.ends_with(strips)) return;
    result_.insert(begin, "{{'");
    result_ += "'}}";
  }

  Status block() {
    HEARTH_ASSIGN(const TemplateTag read, tag("%}"));
    const std::string_view keyword = read.tokens[0].text;
    const Tokens rest = Tokens(read.tokens).subspan(1);
    if (keyword.starts_with("end")) {
      if (blocks_.empty() || blocks_.back() != keyword.substr(3))
        return invalid(fmt::format("{} ends nothing", in_quotes(keyword)));
      blocks_.pop_back();
    } else if (keyword == "if" || keyword == "filter") {
      HEARTH_TRY(wrap(rest, "hearth_check"));
      HEARTH_TRY(open(keyword));
    } else if (keyword == "elif") {
      HEARTH_TRY(wrap(rest, "hearth_check"));
    } else if (keyword == "for") {
      HEARTH_TRY(loop(rest));
      HEARTH_TRY(open(keyword));
    } else if (keyword == "set") {
      HEARTH_TRY(set(rest));
    } else if (keyword == "macro") {
      HEARTH_TRY(macro(rest));
      HEARTH_TRY(open(keyword));
    } else if (keyword == "generation") {
      HEARTH_TRY(open(keyword));
    } else if (keyword != "else" && keyword != "break" && keyword != "continue") {
      return invalid(fmt::format("a tag {} is not supported", in_quotes(keyword)));
    }
    copy_to(read.end);
    result_ += source_[at_ - 3] == '-' ? kLandmark.substr(0, kLandmark.size() - 2) : kLandmark;
    if (source_[at_ - 3] == '-') result_ += "-#}";
    return {};
  }

  Status open(std::string_view keyword) {
    if (blocks_.size() == kMaxBlocks)
      return invalid(fmt::format("more than {} blocks in each other", kMaxBlocks));
    blocks_.push_back(keyword);
    return {};
  }
  bool inside(std::string_view keyword) const {
    return std::ranges::find(blocks_, keyword) != blocks_.end();
  }

  Status loop(Tokens rest) {
    const auto top = [](std::string_view word) {
      return [word](const TemplateToken& token) { return token.depth == 0 && token.is(word); };
    };
    const auto in = std::ranges::find_if(rest, top("in"));
    if (in == rest.end()) return invalid("a loop without 'in'");
    const auto end = std::find_if(in, rest.end(), top("if"));
    if (std::find_if(in, rest.end(), top("recursive")) != rest.end())
      return invalid("recursive loops are not supported");
    for (const TemplateToken& token : rest)
      if (changes_list(token)) return invalid("a loop that changes a list while it goes over it");
    // What is called while minja goes over a list might change it.
    for (auto token = end; token != rest.end(); ++token)
      if (token->is("|") || (token->is("(") && ends_value(token[-1])))
        return invalid("a loop's condition may not call anything");
    return wrap({in + 1, end}, "hearth_items");
  }

  Status set(Tokens rest) {
    const auto equals = std::ranges::find_if(
        rest, [](const TemplateToken& token) { return token.depth == 0 && token.is("="); });
    if (equals == rest.end()) return open("set");
    return wrap({equals + 1, rest.end()},
                rest.size() > 1 && rest[1].is(".") ? "hearth_kept" : "hearth_check");
  }

  Status macro(Tokens rest) {
    // A macro made in a loop or in another one would keep itself alive for ever.
    if (inside("for") || inside("macro")) return invalid("a macro inside a loop or another macro");
    for (std::size_t i = 2; i < rest.size(); ++i)
      if (rest[i].is("|") || (rest[i].is("(") && ends_value(rest[i - 1])))
        return invalid("a macro's default values may not call anything");
    return {};
  }

  static bool changes_list(const TemplateToken& token) {
    return token.is("append") || token.is("insert") || token.is("pop");
  }

  Status check_tokens(Tokens tokens) {
    int products = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const TemplateToken& token = tokens[i];
      const auto symbol = [&](std::size_t at, std::string_view text) {
        return at < tokens.size() && tokens[at].is(text);
      };
      const bool binary = i > 0 && ends_value(tokens[i - 1]);
      if (token.is("*") && binary &&
          (++products > 1 || i + 1 == tokens.size() || !is_small_integer(tokens[i + 1])))
        return invalid("'*' is supported only with a small number behind it, once in a tag");
      if (token.is("**") && binary) return invalid("'**' is not supported");
      if (token.is("/") || token.is("//") || token.is("%")) {
        if (i + 1 == tokens.size() || !is_small_integer(tokens[i + 1]) ||
            tokens[i + 1].text.find_first_not_of('0') == std::string_view::npos ||
            symbol(i + 2, ".") || symbol(i + 2, "[") || symbol(i + 2, "("))
          return invalid("a division by anything but a small number");
      }
      if (token.is("loop") && !(i > 0 && tokens[i - 1].is("."))) {
        constexpr std::array<std::string_view, 9> kKnown = {"index",     "index0",   "revindex",
                                                            "revindex0", "first",    "last",
                                                            "length",    "previtem", "nextitem"};
        if (!symbol(i + 1, ".") || i + 2 >= tokens.size() || !is_one_of(tokens[i + 2], kKnown))
          return invalid("'loop' is supported only as loop.index, loop.first and their like");
      }
      const bool called = i > 0 && tokens[i - 1].is(".") && symbol(i + 1, "(");
      if (called && (token.is("split") || token.is("replace")) &&
          (i + 2 >= tokens.size() || tokens[i + 2].kind != Kind::kString ||
           tokens[i + 2].text.size() <= 2))
        return invalid(fmt::format("{} without a text to look for", in_quotes(token.text)));
      if (token.is("[")) HEARTH_TRY(check_slice(tokens.subspan(i)));
      if (changes_list(token)) {
        if (inside("macro")) return invalid("a macro that changes a list");
        if (called) HEARTH_TRY(copy_argument(tokens.subspan(i)));
      }
    }
    return {};
  }

  // minja reads beyond a text that is cut with a step, unless all of it is meant.
  static Status check_slice(Tokens tokens) {
    const int depth = tokens[0].depth;
    const auto end = std::find_if(tokens.begin() + 1, tokens.end(),
                                  [&](const auto& token) { return token.depth == depth; });
    const Tokens inner(tokens.begin() + 1, end);
    const auto colons = std::ranges::count_if(
        inner, [&](const auto& token) { return token.depth == depth + 1 && token.is(":"); });
    if (colons < 2) return {};
    const std::size_t number = inner.size() > 2 && inner[2].is("-") ? 3 : 2;
    if (inner[0].is(":") && inner[1].is(":") && inner.size() == number + 1 &&
        is_small_integer(inner[number]))
      return {};
    return invalid("a step is supported only over a whole list, as in [::-1]");
  }

  // tokens: append ( argument ), or insert ( index , argument ).
  Status copy_argument(Tokens tokens) {
    if (tokens[0].is("pop")) return {};
    const int depth = tokens[1].depth;
    const auto close = std::find_if(tokens.begin() + 2, tokens.end(),
                                    [&](const auto& token) { return token.depth == depth; });
    auto begin = tokens.begin() + 2;
    if (tokens[0].is("insert")) {
      begin = std::find_if(begin, close, [&](const auto& token) {
        return token.depth == depth + 1 && token.is(",");
      });
      if (begin != close) ++begin;
    }
    if (begin == close) return invalid(fmt::format("{} of nothing", in_quotes(tokens[0].text)));
    insert_before(*begin, "hearth_copy(");
    insert_before(*close, ")");
    return {};
  }

  Status wrap(Tokens tokens, std::string_view function) {
    if (tokens.empty()) return invalid("an expression is missing");
    for (const TemplateToken& token : tokens)
      if (token.depth == 0 && (token.is(",") || token.is("=") || token.is(":")))
        return invalid(fmt::format("a {} where none can be", in_quotes(token.text)));
    insert_before(tokens.front(), fmt::format("{}(hearth_tick(), ", function));
    const std::string_view last = tokens.back().text;
    insertions_.push_back({position(last) + last.size(), ")"});
    return {};
  }

  std::size_t position(std::string_view text) const {
    return static_cast<std::size_t>(text.data() - source_.data());
  }
  void insert_before(const TemplateToken& token, std::string text) {
    insertions_.push_back({position(token.text), std::move(text)});
  }

  // Copies up to `end` with what is to be inserted, of which no two are at one place.
  void copy_to(std::size_t end) {
    std::ranges::sort(insertions_, {}, &Insertion::at);
    for (const Insertion& insertion : insertions_) {
      result_ += source_.substr(at_, insertion.at - at_);
      result_ += insertion.text;
      at_ = insertion.at;
    }
    insertions_.clear();
    result_ += source_.substr(at_, end - at_);
    at_ = end;
  }

  struct Insertion {
    std::size_t at;
    std::string text;
  };

  std::string_view source_;
  std::size_t at_ = 0;
  std::string result_;
  std::vector<std::string_view> blocks_;  // open ones, by keyword
  std::vector<Insertion> insertions_;     // in the tag at at_
};

}  // namespace

Result<std::string> guard_template(std::string_view source) { return Guard(source).run(); }

}  // namespace hearth
