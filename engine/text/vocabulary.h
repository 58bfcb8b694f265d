// A vocabulary as plain data, whatever file it came from.
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
  // Control and user-defined tokens: white space beside one in a text belongs to it.
  bool takes_space_before = false, takes_space_after = false;
};

struct Vocabulary {
  VocabularyKind kind = VocabularyKind::kNone;
  std::vector<VocabularyToken> tokens;  // by id
  // "left right", best first. SentencePiece has them instead of scores in Hugging Face files.
  std::vector<std::string> merges;
  std::string pretokenizer;  // "llama-bpe", "qwen2", ...: names as in GGUF
  std::optional<std::uint32_t> bos, eos, unknown;
  std::vector<std::uint32_t> end_of_generation;  // eos, end of turn, ...
  bool add_bos = false;                          // to a text that starts a conversation
  bool add_space_prefix = true;                  // SentencePiece: a text starts as if after a space
  bool space_prefix_once = false;                // ... but not what follows a special token
  bool space_prefix_doubles = true;              // ... and " text" gets a second one
  bool normalize_nfc = false;  // texts are composed (NFC) first; they do not come back as given
  bool ignore_merges = false;  // a word that is in the vocabulary is one token, whatever the merges
  std::string chat_template;   // Jinja; empty: the model brings none
};

// From a GGUF file's metadata, or from tokenizer.json and tokenizer_config.json. A model without a
// vocabulary is no error; one that contradicts itself is.
Result<Vocabulary> read_vocabulary(const ModelFile& file);

}  // namespace hearth
