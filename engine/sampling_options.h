// How a request's tokens are chosen. Plain data; engine/sampling/README.md says what each setting
// does.
#pragma once

#include <cstdint>

namespace hearth {

inline constexpr uint32_t kMaxTopLogprobs = 20;

// All filters and penalties are off here; the defaults for users are in sampling_defaults.h.
struct SamplingOptions {
  float temperature = 1.0f;  // 0: greedy
  uint32_t top_k = 0;        // 0: off
  float top_p = 1.0f;        // 1: off
  float min_p = 0.0f;        // 0: off
  float repetition_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  uint64_t seed = 0;
  uint32_t top_logprobs = 0;  // at most kMaxTopLogprobs
};

}  // namespace hearth
