// Speculation for one request: guesses its next tokens from its own text, and learns from what is
// accepted how many are worth guessing. Never changes what is generated: README.md of
// engine/decoding. Used by the engine thread only.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/decoding/speculation/ngram.h"

namespace hearth {

enum class SpeculationMethod : std::uint8_t { kNone, kNgram };

struct SpeculationOptions {
  SpeculationMethod method = SpeculationMethod::kNone;
  std::uint32_t max_proposed = 8;  // tokens per request and step
};

class Speculation {
 public:
  // `max_tokens`: of the whole sequence.
  Speculation(const SpeculationOptions& options, std::span<const std::uint32_t> prompt,
              std::uint32_t max_tokens);

  // Takes in tokens that became final.
  void append(std::span<const std::uint32_t> tokens);
  // Whether there is anything to propose after the tokens so far.
  bool promising() const;
  // The guesses for the next step; none if nothing promising is known. Valid until the next call.
  std::span<const std::uint32_t> propose();
  // Learns what became of the last guesses.
  void judged(std::uint32_t proposed, std::uint32_t accepted);

 private:
  std::uint32_t most_;
  std::uint32_t length_;     // proposals next time
  std::uint32_t pause_ = 0;  // tokens to wait before guessing again
  std::uint32_t failures_ = 0;
  NgramProposer ngrams_;
  std::vector<std::uint32_t> proposed_;
};

}  // namespace hearth
