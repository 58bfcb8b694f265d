// Shortens the texts of a prompt with the help of a model: scores them (prompt_scorer.h) and drops
// what is least surprising (compress/). Waits for the engine; any thread may call it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/compress/compress.h"
#include "engine/prompt_scorer.h"

namespace hearth {

struct CompressionOptions {
  double ratio = 0.5;           // of the context's tokens to keep
  double question_ratio = 1.0;  // of the question's
  CompressUnit unit = CompressUnit::kPhrase;
  uint32_t min_tokens = 64;  // prompts with fewer tokens are left as they are
};

// What the question's budget applies to: nothing, the last paragraph if it asks or instructs, or
// the whole text.
enum class PromptQuestion { kNone, kAtEnd, kAll };

// A message or a document.
struct PromptText {
  std::string text;
  PromptQuestion question = PromptQuestion::kNone;
};

struct CompressedPrompt {
  std::vector<std::string> texts;
  uint32_t tokens_before = 0, tokens_after = 0;  // of all texts
  double scoring_seconds = 0;                    // 0: nothing was done
};

// An error says what is wrong with the options, or why the texts could not be scored.
Result<CompressedPrompt> compress_prompt(Engine& engine, const Tokenizer& tokenizer,
                                         std::span<const PromptText> texts,
                                         const CompressionOptions& options,
                                         const ScoreUntil& until = {});

}  // namespace hearth
