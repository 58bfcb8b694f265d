// How a request's tokens are chosen. Plain data; docs/sampling.md says what each setting
// does.
#pragma once

#include <cstdint>

#include "engine/sampler_order.h"

namespace hearth {

inline constexpr uint32_t kMaxTopLogprobs = 20;

// Below this a row is greedy: any other token's weight would be 0 unless its logit almost equals
// the largest.
inline constexpr float kLeastTemperature = 1e-5f;

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

  float typical_p = 1.0f;        // 1: off
  float top_n_sigma = 0.0f;      // 0 or less: off
  float top_a = 0.0f;            // this and the next two, 0: off
  float epsilon_cutoff = 0.0f;   // a probability
  float eta_cutoff = 0.0f;       // a probability
  float xtc_probability = 0.0f;  // 0: off
  float xtc_threshold = 0.1f;    // above 0.5: off
  float dynatemp_range = 0.0f;   // 0: the temperature is the same for every token
  float dynatemp_exponent = 1.0f;
  float smoothing_factor = 0.0f;  // 0: off
  float smoothing_curve = 1.0f;
  uint32_t mirostat = 0;  // 0: off; 2: replaces the samplers that drop tokens
  float mirostat_tau = 5.0f;
  float mirostat_eta = 0.1f;
  float dry_multiplier = 0.0f;  // 0: off
  float dry_base = 1.75f;
  uint32_t dry_allowed_length = 2;
  int32_t dry_penalty_last_n = -1;  // 0: off; -1: all tokens
  SamplerOrder order;
};

}  // namespace hearth
