#include "engine/text/pretokenize.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pcre2.h>

#include "engine/text/utf8.h"

namespace hearth {
namespace {

using Patterns = std::vector<std::string_view>;

// The patterns are spelt as in the models' own tokenizer.json files, which are recognized by
// comparing strings. Each pattern of a list splits the pieces that the previous ones left: its
// matches become pieces, and so does the text between them.
constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)"
    "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|"
    "\\s+(?!\\S)|\\s+";
// Cased letters according to deepseek-llm's list of ranges, which lacks modern Georgian. Trailing
// white space is only matched at the beginning of a run; otherwise a long run would take quadratic
// time.
constexpr std::string_view kCasedWord = R"(\s?(?:(?![ა-ჿ])[\p{Lu}\p{Ll}\p{Lt}])+)";
constexpr std::string_view kTrailingSpace = R"((?<!\s)\s+\z)";
constexpr std::string_view kEastAsian = "[一-龥ࠀ-一가-\xed\x9f\xbf]+";
constexpr std::string_view kPunctuation = R"([\p{P}\$\+<=>\^~\|`]+)";

struct Row {
  std::string_view names;  // separated by spaces
  Patterns patterns;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      {"gpt-2 phi phi-2 mpt olmo jais", {kGpt2}},
      {"llama-bpe llama3 llama-v3 dbrx smaug-bpe chatglm-bpe falcon3", {kLlama3}},
      {"qwen2 stablelm2 deepseek-r1-qwen megrez", {kQwen2}},
      {"starcoder refact command-r smollm codeshell exaone", {R"(\p{N})", kGpt2}},
      {"falcon", {kPunctuation, kGpt2, "[0-9][0-9][0-9]"}},
      {"deepseek-llm",
       {"[\\r\\n]", kCasedWord, "\\s?[!-/:-~！-／：-～‘-‟　-。]+", kTrailingSpace, kEastAsian,
        R"(\p{N}+)"}},
      {"deepseek-coder", {"[\\r\\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kEastAsian, R"(\p{N})"}},
      {"deepseek-v3", {R"(\p{N}{1,3})", "[一-龥぀-ゟ゠-ヿ]+", kDeepseek3}},
      {"tekken", {kTekken}},
      {"gpt-4o", {kGpt4o}},  // phi-4-mini
      {"default", {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"}},
  };
  return table;
}

// Replaces PCRE's own \s, which counts U+180E as white space; Unicode and all tokenizers do not.
constexpr std::string_view kSpaceSet =
    R"(\x09-\x0d\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

std::string with_unicode_space(std::string_view pattern) {
  std::string result;
  bool in_set = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char escaped = pattern[++i];
      if (escaped == 's')
        result += in_set ? std::string(kSpaceSet) : fmt::format("[{}]", kSpaceSet);
      else if (escaped == 'S')
        result += fmt::format("[^{}]", kSpaceSet);
      else
        result.append({c, escaped});
      continue;
    }
    if (c == '[') in_set = true;
    if (c == ']') in_set = false;
    result += c;
  }
  return result;
}

// Patterns that tokenizer.json files spell differently from the table.
std::string as_in_table(std::string_view pattern) {
  if (pattern.starts_with("\\s?[A-Za-zµÀ-Ö")) return std::string(kCasedWord);
  if (pattern == "\\s+$") return std::string(kTrailingSpace);
  std::string result;
  for (const char c : pattern) {
    if (c == '\r')
      result += "\\r";
    else if (c == '\n')
      result += "\\n";
    else
      result += c;
  }
  return result;
}

bool has_word(std::string_view list, std::string_view word) {
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(' ', at), list.size());
    if (list.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

struct CodeDeleter {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

}  // namespace

class Pretokenizer::Stage {
 public:
  static Result<std::unique_ptr<Stage>> create(std::string_view pattern) {
    const std::string text = with_unicode_space(pattern);
    int error = 0;
    PCRE2_SIZE offset = 0;
    auto stage = std::make_unique<Stage>();
    stage->code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                     PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error,
                                     &offset, nullptr));
    if (!stage->code_) {
      std::array<PCRE2_UCHAR, 128> message{};
      pcre2_get_error_message(error, message.data(), message.size());
      return Error{ErrorKind::kInternal,
                   fmt::format("pre-tokenizer pattern '{}': {} at {}", pattern,
                               reinterpret_cast<const char*>(message.data()), offset)};
    }
    // If there is no just-in-time compiler for this machine, the interpreter gives the same result
    // more slowly.
    pcre2_jit_compile(stage->code_.get(), PCRE2_JIT_COMPLETE);
    stage->limits_.reset(pcre2_match_context_create(nullptr));
    pcre2_set_heap_limit(stage->limits_.get(), 64 * 1024);  // KiB
    return stage;
  }

  // REQUIRES: `text` is valid UTF-8. If a match exceeds PCRE's limits, the rest stays in one piece.
  template <class Word>
  void split(std::string_view text, const Word& word) const {
    const std::unique_ptr<pcre2_match_data, CodeDeleter> found(pcre2_match_data_create(1, nullptr));
    std::size_t at = 0, done = 0;
    while (at < text.size()) {
      const int count =
          pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                      PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, found.get(), limits_.get());
      if (count < 0) break;
      const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(found.get());
      if (ends[0] > done) word(text.substr(done, ends[0] - done));
      word(text.substr(ends[0], ends[1] - ends[0]));
      at = done = ends[1];
    }
    if (done < text.size()) word(text.substr(done));
  }

 private:
  std::unique_ptr<pcre2_code, CodeDeleter> code_;
  std::unique_ptr<pcre2_match_context, CodeDeleter> limits_;
};

Pretokenizer::Pretokenizer() = default;
Pretokenizer::~Pretokenizer() = default;

Result<std::unique_ptr<Pretokenizer>> Pretokenizer::create(std::string_view name) {
  for (const Row& row : rows()) {
    if (!has_word(row.names, name)) continue;
    std::unique_ptr<Pretokenizer> made(new Pretokenizer);
    for (const std::string_view pattern : row.patterns) {
      HEARTH_ASSIGN(auto stage, Stage::create(pattern));
      made->stages_.push_back(std::move(stage));
    }
    return made;
  }
  return Error{
      ErrorKind::kUnsupported,
      fmt::format("unknown pre-tokenizer '{}'; the known ones are {}", name, pretokenizer_names())};
}

void Pretokenizer::split(std::string_view text,
                         const std::function<void(std::string_view)>& word) const {
  // All stages but the last split the text into pieces; the last one splits those into words.
  std::vector<std::string_view> pieces, cut;
  while (!text.empty()) {
    const std::size_t valid = utf8_valid_prefix(text);
    if (valid == 0) {
      std::size_t broken = 0;
      do broken += utf8_step(text.substr(broken)).bytes;
      while (broken < text.size() &&
             utf8_step(text.substr(broken)).kind != Utf8Step::Kind::kCharacter);
      word(text.substr(0, broken));
      text.remove_prefix(broken);
      continue;
    }
    pieces.assign(1, text.substr(0, valid));
    for (std::size_t i = 0; i + 1 < stages_.size(); ++i) {
      cut.clear();
      for (const std::string_view piece : pieces)
        stages_[i]->split(piece, [&](std::string_view part) { cut.push_back(part); });
      pieces.swap(cut);
    }
    for (const std::string_view piece : pieces) stages_.back()->split(piece, word);
    text.remove_prefix(valid);
  }
}

std::string_view pretokenizer_name(std::span<const std::string> patterns) {
  std::vector<std::string> ours;
  for (const std::string& pattern : patterns) ours.push_back(as_in_table(pattern));
  for (const Row& row : rows())
    if (std::ranges::equal(row.patterns, ours)) return row.names.substr(0, row.names.find(' '));
  return {};
}

std::string_view gpt2_pattern() { return kGpt2; }

std::string pretokenizer_names() {
  std::vector<std::string_view> lists;
  for (const Row& row : rows()) lists.push_back(row.names);
  std::string names = fmt::format("{}", fmt::join(lists, " "));
  for (std::size_t at = 0; (at = names.find(' ', at)) != std::string::npos; at += 2)
    names.replace(at, 1, ", ");
  return names;
}

}  // namespace hearth
