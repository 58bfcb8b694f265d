// Reads a vocabulary from GGUF metadata, with the defaults that writers of such files rely on.
#include <fmt/format.h>

#include "engine/text/vocabulary_parts.h"
#include "engine/weights/in_quotes.h"
#include "engine/weights/metadata.h"

namespace hearth {
namespace {

Result<TokenKind> token_kind(double number) {
  if (number == 1) return TokenKind::kNormal;
  if (number == 2) return TokenKind::kUnknown;
  if (number == 3) return TokenKind::kControl;
  if (number == 4) return TokenKind::kUserDefined;
  if (number == 5) return TokenKind::kUnused;
  if (number == 6) return TokenKind::kByte;
  return invalid(
      fmt::format("tokenizer.ggml.token_type has the value {}; valid are 1 to 6", number));
}

Status read_tokens(const Metadata& metadata, Vocabulary& vocabulary) {
  HEARTH_ASSIGN(const auto texts, metadata.texts("tokenizer.ggml.tokens"));
  if (!texts) return invalid("tokenizer.ggml.tokens is missing");
  HEARTH_ASSIGN(const auto scores, metadata.numbers("tokenizer.ggml.scores"));
  HEARTH_ASSIGN(const auto kinds, metadata.numbers("tokenizer.ggml.token_type"));
  const auto same_size = [&](const char* what, const auto& list) -> Status {
    if (!list || list->size() == texts->size()) return {};
    return invalid(fmt::format("tokenizer.ggml.{} has {} entries for {} tokens", what, list->size(),
                               texts->size()));
  };
  HEARTH_TRY(same_size("scores", scores));
  HEARTH_TRY(same_size("token_type", kinds));
  vocabulary.tokens.resize(texts->size());
  for (std::size_t id = 0; id < texts->size(); ++id) {
    VocabularyToken& token = vocabulary.tokens[id];
    token.text = (*texts)[id];
    if (scores) token.score = static_cast<float>((*scores)[id]);
    if (!(token.score == token.score))
      return invalid(
          fmt::format("tokenizer.ggml.scores: the score of token {} is not a number", id));
    if (kinds) {
      HEARTH_ASSIGN(token.kind, token_kind((*kinds)[id]));
    }
  }
  return {};
}

Result<std::optional<std::uint32_t>> read_id(const Metadata& metadata, const char* name,
                                             std::size_t tokens) {
  const std::string key = fmt::format("tokenizer.ggml.{}_token_id", name);
  HEARTH_ASSIGN(const auto id, metadata.unsigned_integer(key));
  if (!id) return std::optional<std::uint32_t>();
  // Some writers use 2^32 - 1 for "none".
  if (*id == 0xFFFFFFFF) return std::optional<std::uint32_t>();
  if (*id >= tokens)
    return invalid(fmt::format("{} is {}, but the vocabulary has {} tokens", key, *id, tokens));
  return std::optional<std::uint32_t>(static_cast<std::uint32_t>(*id));
}

Status read_ids(const Metadata& metadata, Vocabulary& vocabulary) {
  const std::size_t count = vocabulary.tokens.size();
  HEARTH_ASSIGN(vocabulary.bos, read_id(metadata, "bos", count));
  HEARTH_ASSIGN(vocabulary.eos, read_id(metadata, "eos", count));
  HEARTH_ASSIGN(vocabulary.unknown, read_id(metadata, "unknown", count));
  // The second name of each is an older one.
  const auto read_either = [&](std::optional<std::uint32_t>& id, const char* name,
                               const char* older) -> Status {
    HEARTH_ASSIGN(id, read_id(metadata, name, count));
    if (!id) {
      HEARTH_ASSIGN(id, read_id(metadata, older, count));
    }
    return {};
  };
  HEARTH_TRY(read_either(vocabulary.infill_prefix, "fim_pre", "prefix"));
  HEARTH_TRY(read_either(vocabulary.infill_suffix, "fim_suf", "suffix"));
  HEARTH_TRY(read_either(vocabulary.infill_middle, "fim_mid", "middle"));
  for (const char* name : {"eot", "eom"}) {
    HEARTH_ASSIGN(const auto id, read_id(metadata, name, count));
    if (id) vocabulary.end_of_generation.push_back(*id);
  }
  // The ids that all llama-like SentencePiece models use, for files that do not give them.
  const auto standard = [&](std::optional<std::uint32_t>& id, std::uint32_t usual,
                            std::string_view text) {
    if (!id && usual < count && vocabulary.tokens[usual].text == text) id = usual;
  };
  if (vocabulary.kind == VocabularyKind::kSentencePiece) {
    standard(vocabulary.unknown, 0, "<unk>");
    standard(vocabulary.bos, 1, "<s>");
    standard(vocabulary.eos, 2, "</s>");
  }
  return {};
}

// Phi-3's tokens include the white space after them, for which GGUF has no key.
void mark_phi3(Vocabulary& vocabulary) {
  for (VocabularyToken& token : vocabulary.tokens)
    if (token.kind == TokenKind::kControl || token.kind == TokenKind::kUserDefined)
      token.takes_space_after = token.text.starts_with("<|") && token.text != "<|endoftext|>";
}

Result<bool> read_flag(const Metadata& metadata, const char* name, bool otherwise) {
  HEARTH_ASSIGN(const auto flag, metadata.boolean(fmt::format("tokenizer.ggml.{}", name)));
  return flag.value_or(otherwise);
}

}  // namespace

Result<Vocabulary> read_gguf_vocabulary(const Metadata& metadata) {
  Vocabulary vocabulary;
  HEARTH_ASSIGN(const auto model, metadata.text("tokenizer.ggml.model"));
  if (!model || *model == "no_vocab" || *model == "none") return vocabulary;
  if (*model == "llama") {
    vocabulary.kind = VocabularyKind::kSentencePiece;
  } else if (*model == "gpt2") {
    vocabulary.kind = VocabularyKind::kBytePair;
  } else {
    return Error{ErrorKind::kUnsupported,
                 fmt::format("tokenizer.ggml.model is {}; supported are llama, gpt2, no_vocab",
                             in_quotes(*model))};
  }
  const bool byte_pair = vocabulary.kind == VocabularyKind::kBytePair;
  HEARTH_TRY(read_tokens(metadata, vocabulary));
  HEARTH_TRY(read_ids(metadata, vocabulary));
  if (byte_pair) {
    HEARTH_ASSIGN(const auto merges, metadata.texts("tokenizer.ggml.merges"));
    if (!merges) return invalid("tokenizer.ggml.merges is missing");
    vocabulary.merges.assign(merges->begin(), merges->end());
    HEARTH_ASSIGN(const auto name, metadata.text("tokenizer.ggml.pre"));
    vocabulary.pretokenizer = name.value_or("default");
    // Models with these pre-tokenizers were trained this way; GGUF has no key for it.
    vocabulary.ignore_merges =
        vocabulary.pretokenizer == "llama-bpe" || vocabulary.pretokenizer == "llama3" ||
        vocabulary.pretokenizer == "llama-v3" || vocabulary.pretokenizer == "tekken";
  }
  const bool starts_with_bos = !byte_pair || vocabulary.pretokenizer.starts_with("llama");
  HEARTH_ASSIGN(vocabulary.add_bos, read_flag(metadata, "add_bos_token", starts_with_bos));
  HEARTH_ASSIGN(vocabulary.add_space_prefix, read_flag(metadata, "add_space_prefix", !byte_pair));
  HEARTH_ASSIGN(const auto architecture, metadata.text("general.architecture"));
  if (!byte_pair && architecture == "phi3") mark_phi3(vocabulary);
  HEARTH_ASSIGN(const auto chat, metadata.text("tokenizer.chat_template"));
  vocabulary.chat_template = chat.value_or("");
  find_end_of_generation(vocabulary);
  return vocabulary;
}

}  // namespace hearth
