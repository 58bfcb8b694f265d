// Byte-level BPE: the bytes of a word are merged by rank. Vocabularies spell tokens in an alphabet
// of 256 printable characters, one per byte.
#include <array>

#include <fmt/format.h>
#include <utf8proc.h>

#include "engine/text/pretokenize.h"
#include "engine/text/tokenizer_kinds.h"
#include "engine/text/utf8.h"
#include "engine/text/word_cache.h"

namespace hearth {
namespace {

// Printable bytes stand for themselves, as Latin-1; the others are numbered from U+0100 on.
std::array<std::uint32_t, 256> byte_alphabet() {
  std::array<std::uint32_t, 256> characters{};
  std::uint32_t next = 256;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    characters[byte] = prints ? byte : next++;
  }
  return characters;
}

std::string to_utf8(std::uint32_t character) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(character), bytes.data());
  return {reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(count)};
}

// A token's bytes. Characters outside the alphabet, which some added tokens have, stay as they are.
std::string to_bytes(std::string_view text, const std::array<std::uint8_t, 512>& byte_of,
                     const std::array<bool, 512>& is_byte) {
  std::string bytes;
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    utf8proc_int32_t character = -1;
    if (step.kind == Utf8Step::Kind::kCharacter)
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                       static_cast<utf8proc_ssize_t>(step.bytes), &character);
    if (character >= 0 && character < 512 && is_byte[static_cast<std::size_t>(character)])
      bytes += static_cast<char>(byte_of[static_cast<std::size_t>(character)]);
    else
      bytes += text.substr(0, step.bytes);
    text.remove_prefix(step.bytes);
  }
  return bytes;
}

std::string composed(std::string_view text) {
  utf8proc_uint8_t* made = nullptr;
  const auto size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &made,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  std::string result(text);
  if (size >= 0) result.assign(reinterpret_cast<const char*>(made), static_cast<std::size_t>(size));
  std::free(made);
  return result;
}

class BytePair final : public Tokenizer {
 public:
  explicit BytePair(Vocabulary vocabulary) : Tokenizer(std::move(vocabulary)) {}

  Status build() {
    HEARTH_ASSIGN(pretokenizer_, Pretokenizer::create(vocabulary_.pretokenizer));
    HEARTH_ASSIGN(const StringIds ids, index_tokens(vocabulary_));
    const auto alphabet = byte_alphabet();
    std::array<std::uint8_t, 512> byte_of{};
    std::array<bool, 512> is_byte{};
    for (std::size_t byte = 0; byte < 256; ++byte) {
      byte_of[alphabet[byte]] = static_cast<std::uint8_t>(byte);
      is_byte[alphabet[byte]] = true;
      byte_ids_[byte] = ids.find(to_utf8(alphabet[byte])).value_or(kNoToken);
    }
    pieces_.reserve(size());
    for (const VocabularyToken& token : vocabulary_.tokens)
      pieces_.push_back(token.kind == TokenKind::kNormal || token.kind == TokenKind::kUnused
                            ? to_bytes(token.text, byte_of, is_byte)
                            : token.text);
    HEARTH_ASSIGN(merges_, read_merges(vocabulary_, ids));
    if (vocabulary_.ignore_merges) {
      whole_words_ = StringIds(pieces_.size());
      for (std::uint32_t id = 0; id < size(); ++id)
        if (vocabulary_.tokens[id].kind == TokenKind::kNormal) whole_words_.insert(pieces_[id], id);
    }
    return {};
  }

 private:
  void encode_plain(std::string_view text, bool, std::vector<std::uint32_t>& ids) const override {
    std::string normal;
    if (vocabulary_.normalize_nfc && utf8_valid_prefix(text) == text.size())
      text = normal = composed(text);
    WordCache cache(text.size());
    std::vector<std::uint32_t> symbols;
    pretokenizer_->split(text, [&](std::string_view piece) {
      cache.append(piece, ids, [&](std::string_view word) { encode_word(word, symbols, ids); });
    });
  }

  void encode_word(std::string_view word, std::vector<std::uint32_t>& symbols,
                   std::vector<std::uint32_t>& ids) const {
    if (vocabulary_.ignore_merges) {
      if (const auto id = whole_words_.find(word)) {
        ids.push_back(*id);
        return;
      }
    }
    symbols.clear();
    for (const char c : word) symbols.push_back(byte_ids_[static_cast<unsigned char>(c)]);
    merges_.merge(symbols, nullptr);
    for (const std::uint32_t id : symbols) {
      if (id != kNoToken)
        ids.push_back(id);
      else if (vocabulary_.unknown)
        ids.push_back(*vocabulary_.unknown);
    }
  }

  std::string plain_piece(std::uint32_t id) const override { return pieces_[id]; }

  std::unique_ptr<Pretokenizer> pretokenizer_;
  std::array<std::uint32_t, 256> byte_ids_{};
  std::vector<std::string> pieces_;  // raw bytes, by id
  MergeTable merges_;
  StringIds whole_words_;  // views of pieces_
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> create_byte_pair(Vocabulary vocabulary) {
  auto made = std::make_unique<BytePair>(std::move(vocabulary));
  HEARTH_TRY(made->build());
  return std::unique_ptr<Tokenizer>(std::move(made));
}

}  // namespace hearth
