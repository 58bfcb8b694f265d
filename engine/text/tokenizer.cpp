#include "engine/text/tokenizer.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/text/special_tokens.h"
#include "engine/text/tokenizer_kinds.h"
#include "engine/weights/in_quotes.h"

namespace hearth {
namespace {

// For models without text: encodes and decodes nothing.
class NoVocabulary final : public Tokenizer {
 public:
  explicit NoVocabulary(Vocabulary vocabulary) : Tokenizer(std::move(vocabulary)) {}

 private:
  void encode_plain(std::string_view, bool, std::vector<std::uint32_t>&) const override {}
  std::string plain_piece(std::uint32_t) const override { return {}; }
};

Status check_ids(const Vocabulary& vocabulary) {
  const auto check = [&](const char* name, std::optional<std::uint32_t> id) -> Status {
    if (!id || *id < vocabulary.tokens.size()) return {};
    return Error{ErrorKind::kInvalid, fmt::format("{} token is {}, but the vocabulary has {}", name,
                                                  *id, vocabulary.tokens.size())};
  };
  HEARTH_TRY(check("BOS", vocabulary.bos));
  HEARTH_TRY(check("EOS", vocabulary.eos));
  HEARTH_TRY(check("unknown", vocabulary.unknown));
  for (const std::uint32_t id : vocabulary.end_of_generation)
    HEARTH_TRY(check("end of generation", id));
  return {};
}

}  // namespace

Result<StringIds> index_tokens(const Vocabulary& vocabulary) {
  StringIds ids(vocabulary.tokens.size());
  for (std::uint32_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& text = vocabulary.tokens[id].text;
    if (text.empty() || ids.insert(text, id)) continue;
    return Error{ErrorKind::kInvalid,
                 fmt::format("token {} is in the vocabulary twice, as {} and {}", in_quotes(text),
                             *ids.find(text), id)};
  }
  return ids;
}

// A merged token is longer than its parts, so merges cannot be cyclic as long as neither part is
// empty.
Result<MergeTable> read_merges(const Vocabulary& vocabulary, const StringIds& ids) {
  MergeTable table(vocabulary.merges.size());
  std::string joined;
  for (std::uint32_t rank = 0; rank < vocabulary.merges.size(); ++rank) {
    const std::string_view merge = vocabulary.merges[rank];
    const auto wrong = [&](std::string_view what) {
      return Error{ErrorKind::kInvalid,
                   fmt::format("merge {} {} {}", rank, in_quotes(merge), what)};
    };
    std::optional<std::uint32_t> left, right;
    std::size_t cut = merge.find(' ', 1);
    if (cut == std::string_view::npos || cut + 1 == merge.size())
      return wrong("is not two tokens with a space between them");
    for (; cut != std::string_view::npos; cut = merge.find(' ', cut + 1)) {
      left = ids.find(merge.substr(0, cut));
      right = ids.find(merge.substr(cut + 1));
      if (left && right) break;
    }
    if (!left || !right) return wrong("joins tokens that are not in the vocabulary");
    joined.assign(merge.substr(0, cut)).append(merge.substr(cut + 1));
    const auto merged = ids.find(joined);
    if (!merged) return wrong("gives a token that is not in the vocabulary");
    table.add(*left, *right, rank, *merged);
  }
  return table;
}

Tokenizer::Tokenizer(Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)),
      special_tokens_(std::make_unique<SpecialTokens>(vocabulary_)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(Vocabulary vocabulary) {
  HEARTH_TRY(check_ids(vocabulary));
  switch (vocabulary.kind) {
    case VocabularyKind::kNone:
      return std::unique_ptr<Tokenizer>(std::make_unique<NoVocabulary>(std::move(vocabulary)));
    case VocabularyKind::kSentencePiece:
      return create_sentence_piece(std::move(vocabulary));
    case VocabularyKind::kBytePair:
      return create_byte_pair(std::move(vocabulary));
  }
  return Error{ErrorKind::kInternal, "the vocabulary has no valid kind"};
}

std::vector<std::uint32_t> Tokenizer::encode(std::string_view text,
                                             const EncodeOptions& options) const {
  std::vector<std::uint32_t> ids;
  ids.reserve(text.size() / 3 + 2);
  const bool with_bos = options.add_bos.value_or(vocabulary_.add_bos) && vocabulary_.bos;
  if (with_bos) ids.push_back(*vocabulary_.bos);
  bool first = true;
  const SpecialTokens::Where where{options.parse_special, options.literal};
  special_tokens_->split(text, where, [&](const SpecialTokens::Part& part) {
    if (!part.token)
      encode_plain(part.text, first, ids);
    else if (!(first && with_bos && *part.token == *vocabulary_.bos))
      ids.push_back(*part.token);
    first = false;
  });
  if (options.add_eos && vocabulary_.eos) ids.push_back(*vocabulary_.eos);
  return ids;
}

std::string Tokenizer::piece(std::uint32_t id, bool special) const {
  if (!is_control(id)) return plain_piece(id);
  return special && id < size() ? vocabulary_.tokens[id].text : std::string();
}

std::string Tokenizer::decode(std::span<const std::uint32_t> ids, bool special) const {
  std::string text;
  bool first = true;
  for (const std::uint32_t id : ids) {
    std::string bytes = piece(id, special);
    if (first && !is_control(id) && !bytes.empty()) {
      first = false;
      if (adds_space_prefix() && bytes.starts_with(' ')) bytes.erase(0, 1);
    }
    text += bytes;
  }
  return text;
}

bool Tokenizer::adds_space_prefix() const {
  return vocabulary_.kind == VocabularyKind::kSentencePiece && vocabulary_.add_space_prefix;
}

bool Tokenizer::is_control(std::uint32_t id) const {
  if (id >= size()) return true;
  const TokenKind kind = vocabulary_.tokens[id].kind;
  return kind == TokenKind::kControl || kind == TokenKind::kUnknown;
}

bool Tokenizer::ends_generation(std::uint32_t id) const {
  return std::ranges::find(vocabulary_.end_of_generation, id) !=
         vocabulary_.end_of_generation.end();
}

}  // namespace hearth
