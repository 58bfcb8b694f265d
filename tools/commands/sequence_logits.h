// Runs given tokens through a model and hands out the logits, for `logits` and `perplexity`.
// REQUIRES: the session's engine was not started, because this uses its runner.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/session.h"
#include "runtime/result.h"

namespace hearth {

// Logits of one step: row i belongs to places[i].
struct LogitRows {
  struct Place {
    size_t sequence = 0;
    uint32_t position = 0;  // of the input token; the logits are for the token after it
  };
  std::vector<Place> places;
  std::vector<float> logits;  // [places, vocabulary]
  uint32_t vocabulary = 0;

  std::span<const float> row(size_t i) const {
    return std::span(logits).subspan(i * vocabulary, vocabulary);
  }
};

// Options for a session that runs a batch of `sequences` sequences of `tokens` tokens each. A step
// has at most options.max_step_tokens tokens, kEvaluationStepTokens if that is 0.
inline constexpr uint32_t kEvaluationStepTokens = 512;
SessionOptions evaluation_options(SessionOptions options, uint32_t sequences, uint32_t tokens,
                                  bool logits_of_all);

// Runs the sequences, which must have the same length, from their beginning. Calls `take` after
// every step that has logits; those are computed from position `first_logit` on. REQUIRES: the
// session was opened with evaluation_options() for as many sequences and tokens.
Status run_sequences(Session& session, std::span<const std::span<const uint32_t>> sequences,
                     uint32_t first_logit, const std::function<void(const LogitRows&)>& take);

}  // namespace hearth
