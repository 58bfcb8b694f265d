// How surprising a text is to a model, token by token, and how likely an answer is after a prompt.
// Uses the engine like any other client: the requests run in the batch with everyone else's. May be
// called from any thread; waits for the results.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compress/compress.h"
#include "engine/engine.h"
#include "engine/text/tokenizer.h"
#include "runtime/result.h"

namespace hearth {

// When to give up waiting, with ErrorKind::kBusy, and a callback that reports progress.
struct ScoreUntil {
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  const std::atomic<bool>* cancelled = nullptr;
  // Called after each part of a long text.
  std::function<void(std::size_t done, std::size_t parts)> scored = {};
};

struct ScoredText {
  // The text as its tokens spell it, which differs from what was given only where the tokenizer
  // normalizes.
  std::string text;
  std::vector<ScoredToken> tokens;  // each begins at its first byte that is not a space
};

// Scores texts as if they followed each other, with an empty line between them. What is longer than
// the context is scored in windows that overlap by half.
Result<std::vector<ScoredText>> score_texts(Engine& engine, const Tokenizer& tokenizer,
                                            std::span<const std::string> texts,
                                            const ScoreUntil& until = {});

// ln p of each token of `answer` after `prompt` and the tokens before it. Both must fit the
// context, with a token to spare. REQUIRES: neither is empty.
Result<std::vector<float>> score_answer(Engine& engine, std::span<const TokenId> prompt,
                                        std::span<const TokenId> answer,
                                        const ScoreUntil& until = {});

}  // namespace hearth
