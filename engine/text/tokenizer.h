// Text to token ids and back. Immutable after creation; any thread may use it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/vocabulary.h"
#include "runtime/result.h"

namespace hearth {

class SpecialTokens;

// The bytes [begin, end) of a text.
struct ByteRange {
  std::size_t begin = 0, end = 0;
};

struct EncodeOptions {
  std::optional<bool> add_bos = {};  // unset: as the vocabulary says
  // Ignores the vocabulary's own flag: a prompt that is to be continued must not have ended.
  // Fine-tuned models often keep the flag that their training needed.
  bool add_eos = false;
  // Whether "<|im_end|>" in the text becomes that token. On for the output of a chat template, which
  // encode_chat() encodes.
  bool parse_special = false;
  // Bytes where it does not, even so: text that must not name control tokens, such as messages. In
  // order, without overlaps. It only matters for special tokens; other tokens may cross the borders.
  std::span<const ByteRange> literal = {};
};

class Tokenizer {
 public:
  // Fails if the vocabulary contradicts itself or its pre-tokenizer is unknown; the message lists
  // the known ones.
  static Result<std::unique_ptr<Tokenizer>> create(Vocabulary vocabulary);
  virtual ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // `text` may be any bytes. Invalid UTF-8 becomes byte tokens, or unknown tokens if the vocabulary
  // has no bytes. If the text itself begins with BOS, no second one is added.
  std::vector<std::uint32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;

  // The bytes of a token, which may be part of a character. Empty for ids beyond the vocabulary
  // and, unless `special`, for control tokens.
  std::string piece(std::uint32_t id, bool special = false) const;
  // The text of all ids, without the space that SentencePiece adds before a text.
  std::string decode(std::span<const std::uint32_t> ids, bool special = false) const;
  // Whether the first token of a text may begin with a space that the text does not have.
  bool adds_space_prefix() const;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(vocabulary_.tokens.size()); }
  bool ends_generation(std::uint32_t id) const;
  // Whether a token is not text, such as <s>. True for ids beyond the vocabulary.
  bool is_control(std::uint32_t id) const;

 protected:
  explicit Tokenizer(Vocabulary vocabulary);

 private:
  // Encodes text without special tokens and appends its ids. `first`: no special token comes before
  // it.
  virtual void encode_plain(std::string_view text, bool first,
                            std::vector<std::uint32_t>& ids) const = 0;
  // The bytes of a token that is not a control token.
  virtual std::string plain_piece(std::uint32_t id) const = 0;

 protected:
  Vocabulary vocabulary_;

 private:
  std::unique_ptr<SpecialTokens> special_tokens_;
};

}  // namespace hearth
