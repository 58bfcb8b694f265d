// What the stand-in for a device samples: a function of the tokens it read, of the request's
// sampling parameters, and of its slot's biases and history. So the answer to every request is
// known without an engine: generate_alone().
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/decoding/speculation/speculation.h"
#include "engine/generation.h"
#include "engine/model/step_executor.h"
#include "engine/sampling/penalties.h"
#include "engine/sampling/sampler.h"
#include "engine/scheduling/scheduler.h"

namespace hearth::testing {

struct StandInOptions {
  SchedulerLimits limits;
  uint32_t vocabulary = 5000;
  // Sampled in turn, whatever was read: for tests of text.
  std::vector<TokenId> script;
  SpeculationOptions speculation = {};  // of an engine over the stand-in
  uint32_t draft_blocks = 0;            // KV blocks of a draft model; 0: there is none
  uint32_t draft_vocabulary = 0;  // of the draft model; 0: the same, so that all drafts are right
};

// The id that follows from a hash. Ids are large, so that a wrong one is unlikely to match by
// chance.
class StandInSampler {
 public:
  explicit StandInSampler(const StandInOptions& options) : options_(options) {}

  static uint64_t mix(uint64_t hash, uint64_t value) {
    uint64_t x = (hash ^ (value + 0x9e3779b97f4a7c15)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 29)) * 0x94d049bb133111eb;
    return x ^ (x >> 32);
  }
  // Independent of the order of the entries.
  static uint64_t sum(std::span<const params::TokenCount> history) {
    uint64_t sum = 0;
    for (const params::TokenCount& entry : history) sum += mix(entry.token, entry.count);
    return sum;
  }
  static uint64_t sum(std::span<const params::TokenBias> biases) {
    uint64_t sum = 0;
    for (const params::TokenBias& entry : biases)
      sum += mix(entry.token, std::bit_cast<uint32_t>(entry.bias));
    return sum;
  }

  // `read` is the hash of all tokens of the sequence.
  TokenId sample(uint64_t read, const params::SamplingRow& row,
                 std::span<const params::TokenCount> history,
                 std::span<const params::TokenBias> biases) const {
    if (!options_.script.empty())
      return allowed(options_.script[row.counter % options_.script.size()], biases);
    uint64_t hash = read;
    if ((row.flags & params::kSamplingGreedy) == 0) {
      hash = mix(hash, uint64_t{row.seed_high} << 32 | row.seed_low);
      hash = mix(hash, row.counter);
    }
    hash = mix(hash, sum(history));
    hash = mix(hash, sum(biases));
    return allowed(static_cast<TokenId>(hash % options_.vocabulary), biases);
  }

  // The most probable tokens after what was read: different ones, the first the most probable. As
  // many as there are tokens if the vocabulary is smaller than the list.
  std::vector<params::TokenLogprob> top(uint64_t read, uint32_t count) const {
    std::vector<params::TokenLogprob> entries;
    const uint64_t first = mix(read, 1) % options_.vocabulary;
    float logprob = -0.3f;
    for (uint32_t i = 0; i < std::min(count, options_.vocabulary); ++i) {
      // The steps are so small that the second token of one beam is often better than the first one
      // of another.
      logprob -= 0.01f + static_cast<float>(mix(read, 2 + i) % 1024) / 2048.0f;
      entries.push_back(
          {.id = static_cast<TokenId>((first + i) % options_.vocabulary), .logprob = logprob});
    }
    return entries;
  }

 private:
  // The first token from `id` on that no bias bans.
  TokenId allowed(TokenId id, std::span<const params::TokenBias> biases) const {
    const auto banned = [&](TokenId token) {
      for (const params::TokenBias& entry : biases)
        if (entry.token == token && std::isinf(entry.bias)) return true;
      return false;
    };
    while (banned(id)) id = (id + 1) % options_.vocabulary;
    return id;
  }

  const StandInOptions options_;
};

// What the stand-in pools: numbers of a token that sums keep exactly.
inline constexpr uint32_t kStandInWidth = 6;
inline float stand_in_hidden(TokenId token, uint32_t column) {
  return static_cast<float>(StandInSampler::mix(token, column) % 201) - 100;
}

// The hidden state of a token for contrastive search: a function of all tokens up to it, which have
// this hash.
inline std::array<double, kStandInWidth> stand_in_direction(uint64_t read) {
  std::array<double, kStandInWidth> direction{};
  double squares = 0;
  for (uint32_t column = 0; column < kStandInWidth; ++column) {
    direction[column] =
        static_cast<double>(StandInSampler::mix(read, 100 + column) % 2001) - 1000.5;
    squares += direction[column] * direction[column];
  }
  for (double& value : direction) value /= std::sqrt(squares);
  return direction;
}
inline double stand_in_similarity(const std::array<double, kStandInWidth>& a,
                                  const std::array<double, kStandInWidth>& b) {
  double sum = 0;
  for (uint32_t column = 0; column < kStandInWidth; ++column) sum += a[column] * b[column];
  return sum;
}

// What the stand-in reports for a given token after tokens with this hash.
inline float stand_in_logprob(uint64_t read, TokenId token) {
  return -static_cast<float>(StandInSampler::mix(read, token) % 65536) / 4096.0f;
}

inline void count_token(std::vector<params::TokenCount>& history, TokenId token) {
  for (params::TokenCount& entry : history) {
    if (entry.token != token) continue;
    ++entry.count;
    return;
  }
  if (history.size() < StepExecutor::kHistoryTokens)
    history.push_back({.token = token, .count = 1});
}

// What the request generates if it runs alone to its full length. With guidance, each token follows
// from what both the request and its shadow read.
inline std::vector<TokenId> generate_alone(const StandInOptions& options,
                                           const GenerationRequest& request) {
  const StandInSampler sampler(options);
  const auto row = make_sampling_row(request.sampling, {});
  const SamplingOptions& sampling = request.sampling;
  const bool penalties = sampling.repetition_penalty != 1.0f || sampling.presence_penalty != 0.0f ||
                         sampling.frequency_penalty != 0.0f;
  std::vector<params::TokenCount> history;
  if (penalties)
    history =
        count_tokens(request.prompt, {}, sampling.repetition_penalty, StepExecutor::kHistoryTokens);
  std::vector<params::TokenBias> biases;
  for (const LogitBias& bias : request.biases)
    biases.push_back({.token = bias.token, .bias = bias.bias});
  uint64_t read = 0, negative = 0;
  for (const TokenId token : request.prompt) read = StandInSampler::mix(read, token);
  const bool guided = request.guidance.guides();
  if (guided && request.guidance.negative_prompt.empty())
    negative = StandInSampler::mix(negative, request.prompt.back());
  for (const TokenId token : request.guidance.negative_prompt)
    negative = StandInSampler::mix(negative, token);
  std::vector<TokenId> ids;
  for (uint32_t i = 0; i < request.max_tokens; ++i) {
    params::SamplingRow at = row.value();
    at.counter = i;
    const uint64_t both = guided ? StandInSampler::mix(read, negative) : read;
    const TokenId id = sampler.sample(both, at, history, biases);
    if (penalties) count_token(history, id);
    ids.push_back(id);
    read = StandInSampler::mix(read, id);
    negative = StandInSampler::mix(negative, id);
  }
  return ids;
}

}  // namespace hearth::testing
