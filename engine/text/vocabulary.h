// A vocabulary as plain data, independent of the file format.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/result.h"

namespace hearth {

class ModelFile;

enum class VocabularyKind {
  kNone,           // ids only: a model without text
  kSentencePiece,  // scores, byte fallback
  kBytePair,       // byte-level, merges
};

enum class TokenKind : std::uint8_t { kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct VocabularyToken {
  std::string text;  // as the file spells it
  float score = 0;
  TokenKind kind = TokenKind::kNormal;
  // For control and user-defined tokens: adjacent white space in a text belongs to the token.
  bool takes_space_before = false, takes_space_after = false;
};

struct Vocabulary {
  VocabularyKind kind = VocabularyKind::kNone;
  std::vector<VocabularyToken> tokens;  // by id
  // "left right", best first. In Hugging Face files SentencePiece vocabularies have these instead
  // of scores.
  std::vector<std::string> merges;
  std::string pretokenizer;  // "llama-bpe", "qwen2", ...: names as in GGUF
  std::optional<std::uint32_t> bos, eos, unknown;
  // Where a gap to be filled begins, what follows it, and where its text starts; see infill.h.
  std::optional<std::uint32_t> infill_prefix, infill_suffix, infill_middle;
  std::vector<std::uint32_t> end_of_generation;  // eos, end of turn, ...
  bool add_bos = false;                          // to a text that starts a conversation
  bool add_space_prefix = true;                  // SentencePiece: adds a space before a text
  bool space_prefix_once = false;                // ... but not after a special token
  bool space_prefix_doubles = true;              // ... even if the text begins with one
  bool normalize_nfc = false;  // normalizes to NFC first: decoding may not restore a text
  bool ignore_merges = false;  // a word that is in the vocabulary is always one token
  std::string chat_template;   // Jinja; empty: the model has none
};

// Reads GGUF metadata, or tokenizer.json and tokenizer_config.json. A model without a vocabulary is
// not an error; a vocabulary that contradicts itself is.
Result<Vocabulary> read_vocabulary(const ModelFile& file);

}  // namespace hearth
