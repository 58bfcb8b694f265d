#include "engine/decoding/speculation/speculation.h"

#include <algorithm>

namespace hearth {
namespace {

// A failed guess pauses guessing for 2 tokens. Each further failure in a row doubles the pause, up
// to 2 to the power of this.
constexpr std::uint32_t kMaxPauseExponent = 5;

}  // namespace

Speculation::Speculation(const SpeculationOptions& options, std::span<const std::uint32_t> prompt,
                         std::uint32_t max_tokens)
    : most_(options.max_proposed), length_(options.max_proposed), ngrams_(max_tokens, {}) {
  ngrams_.append(prompt);
  proposed_.reserve(most_);
}

void Speculation::append(std::span<const std::uint32_t> tokens) {
  ngrams_.append(tokens);
  pause_ -= std::min(pause_, static_cast<std::uint32_t>(tokens.size()));
}

bool Speculation::promising() const { return pause_ == 0 && ngrams_.matches(); }

std::span<const std::uint32_t> Speculation::propose() {
  proposed_.clear();
  if (pause_ == 0) ngrams_.propose(length_, proposed_);
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
    pause_ = 1u << failures_;
  }
}

}  // namespace hearth
