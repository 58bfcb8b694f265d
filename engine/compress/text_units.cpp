#include "engine/compress/text_units.h"

#include <algorithm>
#include <optional>
#include <string>

namespace hearth {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) {
  // Every byte of a character beyond ASCII counts as a letter.
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c & 0x80) != 0;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

bool has_digit(std::string_view text) { return std::ranges::any_of(text, is_digit); }

// What instructions begin with.
constexpr std::string_view kInstructions[] = {
    "please",    "answer",    "explain", "describe", "list",       "write",   "summarise",
    "summarize", "translate", "use",     "do not",   "don't",      "do",      "give",
    "return",    "compare",   "find",    "show",     "tell",       "name",    "make sure",
    "remember",  "never",     "always",  "you must", "you should", "you are", "note that",
    "ignore",    "include",   "reply",   "respond",  "calculate",  "compute", "complete",
    "continue",  "fill",      "choose",  "select",   "classify",   "extract", "rewrite",
    "correct",   "fix",       "output",  "print",    "think",      "let's",   "suppose"};

bool is_instruction(std::string_view sentence) {
  const std::string words = lower(sentence.substr(0, 32));
  return std::ranges::any_of(kInstructions, [&](std::string_view begin) {
    return words.starts_with(begin) &&
           (words.size() == begin.size() || !is_letter(words[begin.size()]));
  });
}

bool is_question(std::string_view sentence) {
  return sentence.find('?') != std::string_view::npos ||
         sentence.find("\uff1f") != std::string_view::npos;
}

// Words that a phrase begins with.
constexpr std::string_view kPhraseWords[] = {
    "and",  "or",   "but",  "of",    "in",    "on",      "at",     "with",  "by",     "for",
    "from", "to",   "that", "which", "who",   "whose",   "when",   "where", "while",  "because",
    "as",   "than", "into", "over",  "after", "before",  "since",  "until", "though", "although",
    "if",   "so",   "then", "about", "under", "between", "through"};

bool begins_phrase(std::string_view word) {
  return std::ranges::find(kPhraseWords, lower(word)) != std::end(kPhraseWords);
}

// Abbreviations whose full stop does not end a sentence.
constexpr std::string_view kAbbreviations[] = {"mr",  "mrs", "ms",  "dr",   "prof",  "st",  "vs",
                                               "e.g", "i.e", "fig", "no",   "cf",    "etc", "al",
                                               "inc", "jr",  "sr",  "dept", "approx"};

bool ends_with_abbreviation(std::string_view text) {
  const size_t space = text.find_last_of(" \n\t(");
  const std::string word = lower(space == std::string_view::npos ? text : text.substr(space + 1));
  if (word.size() == 1 && is_letter(word[0])) return true;  // an initial
  return std::ranges::find(kAbbreviations, word) != std::end(kAbbreviations);
}

size_t skip_spaces(std::string_view text, size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

// The same, but not the indentation of the line that follows.
size_t skip_gap(std::string_view text, size_t at) {
  const size_t end = skip_spaces(text, at);
  const size_t line = text.substr(at, end - at).rfind('\n');
  return line == std::string_view::npos ? end : at + line + 1;
}

// Where the sentence that begins at `at` ends, with the white space after it. It does not go beyond
// a line.
size_t sentence_end(std::string_view text, size_t at) {
  for (size_t i = at; i < text.size(); ++i) {
    if (text[i] == '\n') return skip_gap(text, i);
    for (const std::string_view stop : {"\u3002", "\uff01", "\uff1f"})
      if (text.substr(i).starts_with(stop)) return skip_gap(text, i + stop.size());
    if (text[i] != '.' && text[i] != '!' && text[i] != '?') continue;
    size_t end = i + 1;
    while (end < text.size() && std::string_view(".!?\"')]").find(text[end]) != std::string::npos)
      ++end;
    if (end < text.size() && !is_space(text[end])) {  // 3.14, example.org
      i = end - 1;
      continue;
    }
    if (text[i] == '.' && ends_with_abbreviation(text.substr(at, i - at))) continue;
    return skip_gap(text, end);
  }
  return text.size();
}

struct Line {
  size_t begin = 0, end = 0;  // without the line's end
};

Line line_at(std::string_view text, size_t at) {
  return {at, std::min(text.find('\n', at), text.size())};
}

bool is_blank(std::string_view line) { return std::ranges::all_of(line, is_space); }

bool looks_like_code(std::string_view line) {
  while (!line.empty() && is_space(line.back())) line.remove_suffix(1);
  if (line.empty()) return false;
  if (line.starts_with("    ") || line.starts_with('\t')) return true;
  return line.back() == ';' || line.back() == '{' || line.back() == '}';
}

// Where the code that begins at `at`, the beginning of a line, ends; `at` if there is none.
size_t code_end(std::string_view text, size_t at) {
  Line line = line_at(text, at);
  const auto next_line = [&] { return std::min(line.end + 1, text.size()); };
  if (text.substr(at).starts_with("```")) {
    for (size_t next = next_line(); next < text.size(); next = next_line()) {
      line = line_at(text, next);
      if (text.substr(next).starts_with("```")) break;
    }
    return skip_gap(text, line.end);
  }
  size_t end = at;
  while (line.begin < text.size()) {
    const std::string_view words = text.substr(line.begin, line.end - line.begin);
    if (!is_blank(words)) {
      if (!looks_like_code(words)) break;
      end = next_line();
    }
    if (next_line() == line.begin) break;
    line = line_at(text, next_line());
  }
  // White space after it, but not the indentation of what follows.
  while (end > at && end < text.size() && text[end] == '\n') ++end;
  return end;
}

void divide_into_phrases(std::string_view text, const TextUnit& sentence,
                         std::vector<TextUnit>& units) {
  size_t begin = sentence.begin, words = 0;
  const auto cut = [&](size_t end) {
    if (end == begin) return;
    units.push_back({.begin = begin,
                     .end = end,
                     .must_stay = has_digit(text.substr(begin, end - begin)),
                     .sentence = sentence.sentence});
    begin = end;
    words = 0;
  };
  size_t at = sentence.begin;
  while (at < sentence.end) {
    size_t end = at;
    while (end < sentence.end && !is_space(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    if (words > 0 && begins_phrase(word)) cut(at);
    ++words;
    end = std::min(skip_spaces(text, end), sentence.end);
    if (!word.empty() && std::string_view(",;:)").find(word.back()) != std::string_view::npos)
      cut(end);
    at = end;
  }
  cut(sentence.end);
}

// Whether words of a sentence have digits, asked from left to right.
class DigitWords {
 public:
  DigitWords(std::string_view text, const TextUnit& sentence)
      : text_(text.substr(0, sentence.end)), at_(sentence.begin), word_(sentence.begin) {}

  // Whether any of the words that this part of the sentence has, or has a piece of, has a digit.
  // REQUIRES: the part begins where the last one ended.
  bool in(size_t begin, size_t end) {
    for (; at_ < begin || (at_ < text_.size() && is_space(text_[at_])); ++at_)
      if (is_space(text_[at_])) word_ = at_ + 1;
    if (at_ >= end) return false;  // only spaces
    read_to(end);
    while (!is_space(text_[read_ - 1]) && read_ < text_.size() && !is_space(text_[read_]))
      read_to(read_ + 1);
    return last_digit_ && *last_digit_ >= word_;
  }

 private:
  void read_to(size_t end) {
    read_ = std::max(read_, word_);
    for (; read_ < end; ++read_)
      if (is_digit(text_[read_])) last_digit_ = read_;
  }

  const std::string_view text_;
  size_t at_, word_;  // the first character that is no space from the part on, and its word
  size_t read_ = 0;   // up to here digits were looked for
  std::optional<size_t> last_digit_;
};

// Words, not tokens, have digits: 12 and 34 of 1234 belong together.
void divide_into_tokens(std::string_view text, const TextUnit& sentence,
                        std::span<const size_t> tokens, std::vector<TextUnit>& units) {
  const auto first = std::ranges::upper_bound(tokens, sentence.begin);
  const auto last = std::ranges::lower_bound(tokens, sentence.end);
  DigitWords digits(text, sentence);
  size_t begin = sentence.begin;
  const auto add = [&](size_t end) {
    units.push_back({.begin = begin,
                     .end = end,
                     .must_stay = digits.in(begin, end),
                     .sentence = sentence.sentence});
    begin = end;
  };
  for (auto token = first; token < last; ++token) add(*token);
  if (begin < sentence.end) add(sentence.end);
}

}  // namespace

std::optional<CompressUnit> compress_unit(std::string_view name) {
  if (name == "token") return CompressUnit::kToken;
  if (name == "phrase") return CompressUnit::kPhrase;
  if (name == "sentence") return CompressUnit::kSentence;
  return std::nullopt;
}

std::vector<TextUnit> divide_text(std::string_view text, CompressUnit unit,
                                  std::span<const size_t> tokens) {
  std::vector<TextUnit> units;
  size_t at = 0, sentence = 0;
  bool line_begins = true;
  while (at < text.size()) {
    TextUnit next{.begin = at, .end = at, .must_stay = true, .sentence = sentence++};
    if (line_begins) next.end = code_end(text, at);
    if (next.end == at) {
      next.end = sentence_end(text, at);
      const std::string_view words = text.substr(at, next.end - at);
      const std::string_view without_mark =
          words.substr(std::min(words.find_first_not_of(" -*#>\t"), words.size()));
      const bool code = words.find('`') != std::string_view::npos;
      next.must_stay = is_question(words) || is_instruction(without_mark) || code ||
                       (unit == CompressUnit::kSentence && has_digit(words));
    }
    at = next.end;
    line_begins = text[at - 1] == '\n';
    if (next.must_stay || unit == CompressUnit::kSentence)
      units.push_back(next);
    else if (unit == CompressUnit::kPhrase)
      divide_into_phrases(text, next, units);
    else
      divide_into_tokens(text, next, tokens, units);
  }
  return units;
}

size_t find_question(std::string_view text) {
  size_t end = text.size();
  while (end > 0 && is_space(text[end - 1])) --end;
  const size_t gap = text.substr(0, end).rfind("\n\n");
  size_t begin = gap == std::string_view::npos ? 0 : gap + 2;
  // A single paragraph: its last line, or its last sentence.
  if (gap == std::string_view::npos) {
    const size_t line = text.substr(0, end).rfind('\n');
    if (line != std::string_view::npos) {
      begin = line + 1;
    } else {
      for (size_t next = 0; next < end; next = sentence_end(text, next)) begin = next;
    }
  }
  const std::string_view last = text.substr(begin, end - begin);
  for (size_t at = 0; at < last.size(); at = sentence_end(last, at)) {
    const std::string_view sentence = last.substr(at, sentence_end(last, at) - at);
    if (is_question(sentence) || is_instruction(sentence)) return begin;
  }
  return text.size();
}

}  // namespace hearth
