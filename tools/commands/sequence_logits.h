// Runs given tokens through a model and shows the logits: what `logits` and `perplexity` are made
// of. Uses the session's runner, so its engine must not have been started.
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
    uint32_t position = 0;  // of the token that was read; the logits are for the next one
  };
  std::vector<Place> places;
  std::vector<float> logits;  // [places, vocabulary]
  uint32_t vocabulary = 0;

  std::span<const float> row(size_t i) const {
    return std::span(logits).subspan(i * vocabulary, vocabulary);
  }
};

// Options for a session that runs `sequences` of `tokens` each side by side. A step has no more
// tokens than options.max_step_tokens, or kEvaluationStepTokens.
inline constexpr uint32_t kEvaluationStepTokens = 512;
SessionOptions evaluation_options(SessionOptions options, uint32_t sequences, uint32_t tokens,
                                  bool logits_of_all);

// Runs the sequences, all of one length, each from its beginning, and calls `take` after every step
// that gave logits; wanted are those of position `first_logit` and after.
// REQUIRES: the session was opened with evaluation_options() for as many sequences and tokens.
Status run_sequences(Session& session, std::span<const std::span<const uint32_t>> sequences,
                     uint32_t first_logit, const std::function<void(const LogitRows&)>& take);

}  // namespace hearth
