#include "engine/decoding/speculation/speculation.h"

#include <algorithm>

namespace hearth {
namespace {

// After failing so often in a row, guessing pauses for twice as many tokens each time.
constexpr std::uint32_t kMaxPauseExponent = 5;

}  // namespace

Speculation::Speculation(const SpeculationOptions& options, std::span<const std::uint32_t> prompt,
                         std::uint32_t max_tokens)
    : most_(options.max_tokens), length_(options.max_tokens), ngrams_(max_tokens, {}) {
  ngrams_.append(prompt);
  proposed_.reserve(most_);
}

bool Speculation::promising() const { return pause_ == 0 && ngrams_.matches(); }

std::span<const std::uint32_t> Speculation::propose() {
  proposed_.clear();
  if (pause_ > 0)
    --pause_;
  else
    ngrams_.propose(length_, proposed_);
  return proposed_;
}

void Speculation::judged(std::uint32_t proposed, std::uint32_t accepted) {
  if (proposed == 0) return;
  if (accepted == proposed)
    length_ = std::min(2 * length_, most_);
  else
    length_ = std::clamp(accepted + 1, 1u, most_);
  if (accepted > 0) {
    failures_ = 0;
  } else {
    failures_ = std::min(failures_ + 1, kMaxPauseExponent);
    pause_ = (1u << failures_) - 1;
  }
}

}  // namespace hearth
