#include "engine/text/vocabulary.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "engine/text/vocabulary_parts.h"
#include "engine/weights/model_file.h"

namespace hearth {
namespace {

// Tokens that end a turn whatever a file says about them; some files declare them as normal.
constexpr std::array<std::string_view, 9> kTurnEnds = {
    "<|eot_id|>",      "<|im_end|>",    "<end_of_turn>",
    "<|end|>",         "<|endoftext|>", "<|eom_id|>",
    "<|end_of_text|>", "</s>",          "<|END_OF_TURN_TOKEN|>"};

}  // namespace

void find_end_of_generation(Vocabulary& vocabulary) {
  auto& ends = vocabulary.end_of_generation;
  if (vocabulary.eos) ends.push_back(*vocabulary.eos);
  for (std::uint32_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const VocabularyToken& token = vocabulary.tokens[id];
    const bool special = token.kind == TokenKind::kControl || token.kind == TokenKind::kUserDefined;
    // "</s>" may also be HTML.
    const bool normal = token.kind == TokenKind::kNormal && token.text != "</s>";
    if ((special || normal) && std::ranges::find(kTurnEnds, token.text) != kTurnEnds.end())
      ends.push_back(id);
  }
  // In gpt-oss's format <|end|> only ends a message, and <|call|> ends the turn as <|return|> does.
  const auto harmony_call =
      std::ranges::find(vocabulary.tokens, "<|call|>", &VocabularyToken::text);
  const bool has_return = std::ranges::find(vocabulary.tokens, "<|return|>",
                                            &VocabularyToken::text) != vocabulary.tokens.end();
  if (harmony_call != vocabulary.tokens.end() && has_return) {
    std::erase_if(ends, [&](std::uint32_t id) {
      return id < vocabulary.tokens.size() && vocabulary.tokens[id].text == "<|end|>";
    });
    ends.push_back(static_cast<std::uint32_t>(harmony_call - vocabulary.tokens.begin()));
  }
  std::ranges::sort(ends);
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  for (const std::uint32_t id : ends)
    if (id < vocabulary.tokens.size()) vocabulary.tokens[id].kind = TokenKind::kControl;
}

Result<Vocabulary> read_vocabulary(const ModelFile& file) {
  const auto read = [&]() -> Result<Vocabulary> {
    if (file.kind() == FileKind::kGguf) return read_gguf_vocabulary(file.metadata());
    if (!file.tokenizer_json()) return Vocabulary{};
    return read_hugging_face_vocabulary(*file.tokenizer_json(),
                                        file.tokenizer_config_json().value_or(std::string_view()),
                                        file.metadata());
  };
  Result<Vocabulary> vocabulary = read();
  HEARTH_TRY(file.check_files());
  if (vocabulary.ok()) return vocabulary;
  const Error error = vocabulary.error();
  return Error{error.kind, fmt::format("{}: {}", file.name(), error.message)};
}

}  // namespace hearth
