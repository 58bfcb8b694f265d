// What a front end submits to the engine and what it gets back. Plain data: front ends see neither
// shader parameters nor the scheduler's types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/ids.h"
#include "engine/sampling_options.h"

namespace hearth {

inline constexpr uint32_t kMaxLogitBiases = 512;  // per request

struct LogitBias {
  TokenId token = 0;
  float bias = 0;  // added to the logit; -infinity bans the token
};

struct GenerationRequest {
  // A running request whose KV blocks are shared, as far as the two prompts agree.
  struct Fork {
    RequestId parent = 0;
    uint32_t tokens = 0;  // the most leading tokens to share
  };

  std::vector<TokenId> prompt;
  SamplingOptions sampling;
  std::vector<LogitBias> biases;  // at most kMaxLogitBiases, and at most one per token
  uint32_t max_tokens = 0;        // most tokens to generate; 0: until the context is full
  std::vector<std::string> stop;  // strings that end the text; not part of it
  bool ignore_end = false;        // continues after the model's end token
  int32_t priority = 0;           // higher runs first
  uint64_t cache_salt = 0;        // only requests with equal salts share prefixes
  std::optional<Fork> fork;
  // For requests submitted together: shares the prompt's blocks of the last request before it that
  // has this unset.
  bool forks_first = false;
  double time_limit_seconds = 0;  // from submission; 0: none
  // What the answer may turn out to be. With speculation it is looked up, which makes the answer
  // faster where they agree; it never changes it.
  std::vector<TokenId> prediction;
};

enum class FinishReason : uint8_t { kNone, kStop, kLength, kCancelled, kTimeLimit, kError };
std::string_view finish_reason_name(FinishReason reason);  // "stop", "length", ...

// A token that could have been chosen.
struct TopLogprob {
  TokenId id = 0;
  float logprob = 0;
};

struct GeneratedToken {
  TokenId id = 0;
  float logprob = 0;
  std::vector<TopLogprob> top;  // the most probable first; at most as many as were requested
  std::string text;             // whole characters that are final; may be empty
};

// Times of a request, in seconds since its submission.
struct GenerationTimes {
  double admitted = 0, first_token = 0, last_token = 0, finished = 0;
};

struct GenerationEnd {
  FinishReason reason = FinishReason::kNone;
  std::string message;  // if the reason is an error
  std::string text;     // text that was held back until the end
  uint32_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  uint32_t proposed_tokens = 0, accepted_tokens = 0;  // by speculation
  GenerationTimes times;
};

}  // namespace hearth
