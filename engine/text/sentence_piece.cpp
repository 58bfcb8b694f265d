// SentencePiece's BPE: characters are merged by score (GGUF) or by rank (Hugging Face), spaces are
// written as U+2581, and characters without a token become byte tokens.
#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

#include <fmt/format.h>

#include "engine/text/tokenizer_kinds.h"
#include "engine/text/utf8.h"
#include "engine/text/word_cache.h"
#include "engine/weights/in_quotes.h"

namespace hearth {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581
// No trained vocabulary has longer tokens; without a bound, trying every split takes quadratic
// time.
constexpr std::size_t kLongestMergedBytes = 1024;

bool merges(const VocabularyToken& token) {
  return token.kind == TokenKind::kNormal || token.kind == TokenKind::kUserDefined;
}

std::string without_marks(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const bool mark = text.substr(at).starts_with(kSpaceMark);
    result += mark ? ' ' : text[at];
    at += mark ? kSpaceMark.size() : 1;
  }
  return result;
}

// Every pair of tokens that forms a token, ranked by the score of the result.
MergeTable merges_by_score(const Vocabulary& vocabulary, const StringIds& ids) {
  const auto& tokens = vocabulary.tokens;
  std::vector<std::uint32_t> order(tokens.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [&](auto a, auto b) { return tokens[a].score > tokens[b].score; });
  struct Pair {
    std::uint32_t left, right, rank, merged;
  };
  std::vector<Pair> pairs;
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const VocabularyToken& token = tokens[order[i]];
    if (i > 0 && token.score < tokens[order[i - 1]].score) ++rank;
    if (!merges(token) || token.text.size() > kLongestMergedBytes) continue;
    const std::string_view text = token.text;
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      if ((static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) continue;  // inside a character
      const auto left = ids.find(text.substr(0, cut));
      if (!left || !merges(tokens[*left])) continue;
      const auto right = ids.find(text.substr(cut));
      if (right && merges(tokens[*right])) pairs.push_back({*left, *right, rank, order[i]});
    }
  }
  MergeTable table(pairs.size());
  for (const Pair& pair : pairs) table.add(pair.left, pair.right, pair.rank, pair.merged);
  return table;
}

class SentencePiece final : public Tokenizer {
 public:
  explicit SentencePiece(Vocabulary vocabulary) : Tokenizer(std::move(vocabulary)) {}

  Status build() {
    HEARTH_ASSIGN(const StringIds ids, index_tokens(vocabulary_));
    byte_ids_.fill(kNoToken);
    pieces_.reserve(size());
    std::size_t characters = 0;
    for (std::uint32_t id = 0; id < size(); ++id) {
      const VocabularyToken& token = vocabulary_.tokens[id];
      if (token.kind == TokenKind::kByte) {
        HEARTH_ASSIGN(const std::uint8_t byte, byte_of(token.text));
        byte_ids_[byte] = id;
        pieces_.emplace_back(1, static_cast<char>(byte));
        continue;
      }
      pieces_.push_back(without_marks(token.text));
      if (!merges(token)) continue;
      characters += is_character(token.text) ? 1 : 0;
      if (joins_words(token.text)) words_apart_ = false;
    }
    characters_ = StringIds(characters);
    for (std::uint32_t id = 0; id < size(); ++id) {
      const VocabularyToken& token = vocabulary_.tokens[id];
      if (merges(token) && is_character(token.text)) characters_.insert(token.text, id);
    }
    if (vocabulary_.merges.empty()) {
      merges_ = merges_by_score(vocabulary_, ids);
    } else {
      HEARTH_ASSIGN(merges_, read_merges(vocabulary_, ids));
    }
    return {};
  }

 private:
  static Result<std::uint8_t> byte_of(std::string_view text) {
    std::uint8_t byte = 0;
    if (text.size() == 6 && text.starts_with("<0x") && text.ends_with(">")) {
      const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
      if (error == std::errc() && end == text.data() + 5) return byte;
    }
    return Error{ErrorKind::kInvalid,
                 fmt::format("byte token {} is not of the form <0x0A>", in_quotes(text))};
  }

  static bool is_character(std::string_view text) {
    return !text.empty() && utf8_step(text).kind == Utf8Step::Kind::kCharacter &&
           utf8_step(text).bytes == text.size();
  }

  // Whether the token contains a space after another character.
  static bool joins_words(std::string_view text) {
    for (std::size_t at = 0; (at = text.find(kSpaceMark, at)) != std::string_view::npos; ++at)
      if (at > 0 && !text.substr(0, at).ends_with(kSpaceMark)) return true;
    return false;
  }

  void encode_plain(std::string_view text, bool first,
                    std::vector<std::uint32_t>& ids) const override {
    std::string marked;
    marked.reserve(text.size() + text.size() / 2);
    if (vocabulary_.add_space_prefix && (first || !vocabulary_.space_prefix_once) &&
        (vocabulary_.space_prefix_doubles || !text.starts_with(' ')))
      marked += kSpaceMark;
    for (const char c : text) {
      if (c == ' ')
        marked += kSpaceMark;
      else
        marked += c;
    }
    Scratch scratch;
    if (!words_apart_) {
      encode_word(marked, scratch, ids);
      return;
    }
    WordCache cache(marked.size());
    const std::string_view whole = marked;
    for (std::size_t at = 0; at < whole.size();) {
      const std::size_t end = word_end(whole, at);
      cache.append(whole.substr(at, end - at), ids,
                   [&](std::string_view word) { encode_word(word, scratch, ids); });
      at = end;
    }
  }

  // A word is a run of spaces and the text after it, up to the next space.
  static std::size_t word_end(std::string_view text, std::size_t at) {
    while (text.substr(at).starts_with(kSpaceMark)) at += kSpaceMark.size();
    return std::min(text.find(kSpaceMark, at), text.size());
  }

  struct Scratch {
    std::vector<std::uint32_t> symbols, widths;  // bytes of each symbol
  };

  void encode_word(std::string_view word, Scratch& scratch, std::vector<std::uint32_t>& ids) const {
    auto& [symbols, widths] = scratch;
    symbols.clear();
    widths.clear();
    for (std::size_t at = 0; at < word.size();) {
      const Utf8Step step = utf8_step(word.substr(at));
      const bool valid = step.kind == Utf8Step::Kind::kCharacter;
      symbols.push_back(valid ? characters_.find(word.substr(at, step.bytes)).value_or(kNoToken)
                              : kNoToken);
      widths.push_back(static_cast<std::uint32_t>(step.bytes));
      at += step.bytes;
    }
    merges_.merge(symbols, &widths);
    std::size_t at = 0;
    for (std::size_t i = 0; i < symbols.size(); at += widths[i++]) {
      if (symbols[i] != kNoToken)
        ids.push_back(symbols[i]);
      else
        append_bytes(word.substr(at, widths[i]), ids);
    }
  }

  void append_bytes(std::string_view character, std::vector<std::uint32_t>& ids) const {
    const auto id_of = [&](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
    if (std::ranges::all_of(character, [&](char c) { return id_of(c) != kNoToken; })) {
      for (const char c : character) ids.push_back(id_of(c));
    } else if (vocabulary_.unknown) {
      ids.push_back(*vocabulary_.unknown);
    }
  }

  std::string plain_piece(std::uint32_t id) const override { return pieces_[id]; }

  StringIds characters_;  // tokens of one character
  std::array<std::uint32_t, 256> byte_ids_{};
  std::vector<std::string> pieces_;  // text with spaces, by id
  MergeTable merges_;
  bool words_apart_ = true;  // no token spans two words
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> create_sentence_piece(Vocabulary vocabulary) {
  auto made = std::make_unique<SentencePiece>(std::move(vocabulary));
  HEARTH_TRY(made->build());
  return std::unique_ptr<Tokenizer>(std::move(made));
}

}  // namespace hearth
