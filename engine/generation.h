// What a front end asks of the engine, and what it gets back. Plain data.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/sampling/sampler.h"
#include "engine/scheduling/scheduler.h"
#include "params/sampling.h"

namespace hearth {

struct GenerationRequest {
  std::vector<TokenId> prompt;
  SamplingOptions sampling;
  std::vector<params::TokenBias> biases;  // a token at most once
  uint32_t max_tokens = 0;                // to generate; 0: until the context is full
  std::vector<std::string> stop;          // ends the text, and is not part of it
  bool ignore_end = false;                // goes on after the model says it is done
  int32_t priority = 0;                   // higher first
  uint64_t cache_salt = 0;                // prefixes are shared only with equal salts
  std::optional<ForkPoint> fork;          // shares the blocks of a request that runs
  // Of several requests submitted at once: shares the prompt's blocks of the last one before it
  // that has this not set.
  bool forks_first = false;
  double time_limit_seconds = 0;  // from submission; 0: none
};

enum class FinishReason : uint8_t { kNone, kStop, kLength, kCancelled, kTimeLimit, kError };
std::string_view finish_reason_name(FinishReason reason);  // "stop", "length", ...

struct GeneratedToken {
  TokenId id = 0;
  float logprob = 0;
  std::vector<params::TokenLogprob> top;  // as many as were asked for
  std::string text;                       // whole characters that are certain now; may be empty
};

// How a request went, in seconds since it was submitted.
struct GenerationTimes {
  double admitted = 0, first_token = 0, last_token = 0, finished = 0;
};

struct GenerationEnd {
  FinishReason reason = FinishReason::kNone;
  std::string message;  // of an error
  std::string text;     // that was held back until the end
  uint32_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  GenerationTimes times;
};

}  // namespace hearth
