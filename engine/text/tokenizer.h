// Text to ids and back. Immutable after creation: any thread.
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

struct EncodeOptions {
  std::optional<bool> add_bos = {};  // nothing: as the vocabulary says
  // Whatever the vocabulary says: what is asked to go on must not have ended. Fine-tuned models
  // often come with the flag their training wanted.
  bool add_eos = false;
  // "<|im_end|>" in the text becomes that token. On for what a chat template made, which has the
  // messages in it as they were written: who writes so ends a turn, as with other runtimes.
  bool parse_special = false;
};

class Tokenizer {
 public:
  // Fails on a vocabulary that contradicts itself, or whose pre-tokenizer is unknown (the message
  // lists those that are not).
  static Result<std::unique_ptr<Tokenizer>> create(Vocabulary vocabulary);
  virtual ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Any bytes are a text: what is not UTF-8 becomes byte tokens, or unknown ones where a vocabulary
  // has no bytes. A BOS that the text itself begins with is not doubled.
  std::vector<std::uint32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;

  // The bytes a token stands for, which may be part of a character. Control tokens stand for
  // nothing unless asked for. Ids beyond the vocabulary stand for nothing.
  std::string piece(std::uint32_t id, bool special = false) const;
  // All of them in a row, without the space SentencePiece puts before a text.
  std::string decode(std::span<const std::uint32_t> ids, bool special = false) const;
  // Whether the first token of a text may carry a space that is not the text's.
  bool adds_space_prefix() const;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(vocabulary_.tokens.size()); }
  bool ends_generation(std::uint32_t id) const;
  // Tokens that are no text, such as <s>; ids beyond the vocabulary are.
  bool is_control(std::uint32_t id) const;

 protected:
  explicit Tokenizer(Vocabulary vocabulary);

 private:
  // Text without special tokens, appended to `ids`. `first`: no special token comes before it.
  virtual void encode_plain(std::string_view text, bool first,
                            std::vector<std::uint32_t>& ids) const = 0;
  // What a token of text (not a control token) stands for.
  virtual std::string plain_piece(std::uint32_t id) const = 0;

 protected:
  Vocabulary vocabulary_;

 private:
  std::unique_ptr<SpecialTokens> special_tokens_;
};

}  // namespace hearth
