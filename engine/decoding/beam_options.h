// What a request says about beam search. Plain data.
#pragma once

#include <cstdint>

namespace hearth {

// When a search ends, as transformers defines it. In every case it ends when there are as many
// finished texts as beams and
//   kOff    the best unfinished text, at its present length, scores no better than the worst
//           finished one
//   kOn     always
//   kNever  no unfinished text can score better, whatever length it reaches
enum class EarlyStopping : std::uint8_t { kOff, kOn, kNever };

inline constexpr std::uint32_t kMaxBeams = 16;

struct BeamOptions {
  std::uint32_t beams = 1;  // 1: no beam search; at most kMaxBeams
  // A text's score is the sum of its log-probabilities, divided by its length in tokens to this
  // power: above 0 favours long texts, below 0 short ones.
  float length_penalty = 1.0f;
  EarlyStopping early_stopping = EarlyStopping::kOff;

  bool searches() const { return beams > 1; }
};

}  // namespace hearth
