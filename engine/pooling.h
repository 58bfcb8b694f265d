// The embedding of a prompt: hidden states after the model's final norm, pooled over its tokens.
// The device adds up the rows of each step; this adds up the steps. It remembers which tokens it
// has, so that a request which is preempted and computes some of them again counts none twice.
//
// Used by the engine thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/generation.h"

namespace hearth {

class PoolingState {
 public:
  // REQUIRES: `kind` is not kNone, and the prompt has tokens.
  PoolingState(Pooling kind, uint32_t prompt_tokens);

  struct Tokens {
    uint32_t first = 0, count = 0;
  };
  // Of the tokens [first, first + count) that a step computes, those to be added up. They are
  // expected by add(), and not asked for again. REQUIRES: tokens are computed in order, without
  // gaps.
  Tokens take(uint32_t first, uint32_t count);
  // `sums` is [ranges, width].
  void add(std::span<const float> sums, uint32_t ranges);
  // The mean over all tokens that were added.
  std::vector<float> mean() const;

 private:
  const uint32_t begin_, end_;  // of the pooled tokens in the prompt
  uint32_t taken_;              // up to here
  std::vector<double> sums_;    // [width]
};

}  // namespace hearth
