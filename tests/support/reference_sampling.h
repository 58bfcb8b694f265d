// The token that a row of logits gives, in double and as simply as possible. The definition, step
// by step, for the logits l of one row:
//
//   1. l[t] += bias                           for tokens in the bias list
//   2. l[t] = l > 0 ? l / repetition : l * repetition; l[t] -= frequency * count + presence if
//      count > 0                              for tokens in the history, or on the path
//      l[t] -= penalty                        for tokens in the DRY list
//      l[t] = -infinity                       for tokens that are not in the mask
//   3. If an l is NaN, the row gives token 0, log-probability -infinity, kNanLogits kept. +infinity
//      becomes the largest float. Tokens at -infinity are not candidates; a row without candidates
//      gives token 0, log-probability -infinity, 0 kept.
//   4. log-probabilities are those of softmax(l) over all candidates
//   5. order: the largest logit first, the lowest id first among equals
//   6. greedy: the first in this order. Otherwise, as in llama.cpp's default chain:
//      top_k:  the first k
//      top_p:  of these, the shortest prefix with at least p of their probability
//      min_p:  of these, the ones with probability >= min_p times the first one's
//      temperature: weights exp((l - largest) / temperature) of the rest
//      Rows with other samplers, or another order: reference_stages.h
//   7. the draw: the largest (l - largest) / temperature + noise, the lowest id among equals. The
//      noise of a token is -ln(-ln(1 - (b + 1/2) / 2^32)) with 32 bits b of Philox 4x32-10: word
//      id % 4, for key = seed, counter = (the row's, 0, id / 4, 0)
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "engine/sampling/sampler.h"
#include "tests/support/reference_stages.h"

namespace hearth::testing {

inline std::array<uint32_t, 4> reference_philox(std::array<uint32_t, 4> counter,
                                                std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xd2511f53} * counter[0];
    const uint64_t second = uint64_t{0xcd9e8d57} * counter[2];
    counter = {
        static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(second),
        static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    key = {key[0] + 0x9e3779b9, key[1] + 0xbb67ae85};
  }
  return counter;
}

// -ln(-ln(1 - (bits + 1/2) / 2^32)), with logarithms of numbers that are exact.
inline double reference_noise(uint32_t bits) {
  const bool small = bits < 0x4b000000;
  const double part = std::ldexp(2.0 * (small ? bits : ~bits) + 1, -33);
  return -std::log(small ? -std::log1p(-part) : -std::log(part));
}

struct ReferenceCandidate {
  uint32_t id = 0;
  float logit = 0;
  double logprob = 0;
  double share = 0;  // the probability of drawing it; 0 if it is filtered out
};

struct ReferenceSample {
  std::vector<ReferenceCandidate> candidates;  // all, in order
  uint32_t id = 0;
  double logprob = -std::numeric_limits<double>::infinity();
  uint32_t kept = 0;
  double draw_margin = 1;  // by how much the drawn token's score is the largest
  double edge_margin = 1;  // how far the filters are from keeping another set
  double surprise = 0;     // of rows with stages, at the chosen token, in bits
};

struct ReferenceRow {
  SamplingOptions options;
  uint32_t counter = 0;
  std::vector<params::TokenBias> biases;
  std::vector<params::TokenCount> history;
  std::vector<uint32_t> path;          // proposed tokens that penalties count as well
  std::vector<uint32_t> followers;     // proposed tokens of which the row may accept one
  std::vector<bool> mask;              // by token; empty: every token may be sampled
  std::vector<params::TokenBias> dry;  // what is subtracted
  double mirostat_mu = 0;
};

// Counts tokens in a history of at most `room` entries, in order.
inline void reference_commit(std::vector<params::TokenCount>& history,
                             std::span<const uint32_t> tokens, size_t room) {
  for (const uint32_t token : tokens) {
    const auto place = std::ranges::find(history, token, &params::TokenCount::token);
    if (place != history.end())
      ++place->count;
    else if (history.size() < room)
      history.push_back({.token = token, .count = 1});
  }
}

inline std::vector<float> reference_adjusted(std::span<const float> logits, const ReferenceRow& row,
                                             size_t history_room) {
  std::vector<float> adjusted(logits.begin(), logits.end());
  for (const auto& [token, bias] : row.biases) adjusted[token] += bias;
  const SamplingOptions& options = row.options;
  std::vector<params::TokenCount> history = row.history;
  reference_commit(history, row.path, history_room);
  for (const auto& [token, count] : history) {
    float& logit = adjusted[token];
    logit = logit > 0 ? logit / options.repetition_penalty : logit * options.repetition_penalty;
    logit -= options.frequency_penalty * static_cast<float>(count) +
             (count > 0 ? options.presence_penalty : 0.0f);
  }
  for (const auto& [token, penalty] : row.dry) adjusted[token] -= penalty;
  for (size_t token = 0; token < row.mask.size(); ++token)
    if (!row.mask[token] && !std::isnan(adjusted[token]))
      adjusted[token] = -std::numeric_limits<float>::infinity();
  return adjusted;
}

// What LogitMix makes of a row.
inline std::vector<float> reference_mix(std::span<const float> own, std::span<const float> other,
                                        const LogitMix& mix) {
  const float least = *std::max_element(own.begin(), own.end()) + std::log(mix.plausible);
  std::vector<float> mixed(own.size());
  for (size_t i = 0; i < own.size(); ++i) {
    const bool dropped = std::isinf(own[i]) || std::isinf(other[i]) || own[i] < least;
    mixed[i] = dropped ? -std::numeric_limits<float>::infinity()
                       : mix.own_weight * own[i] + mix.other_weight * other[i];
  }
  return mixed;
}

inline ReferenceSample reference_sample(std::span<const float> logits, const ReferenceRow& row,
                                        size_t history_room = 1u << 30) {
  const SamplingOptions& options = row.options;
  const std::vector<float> adjusted = reference_adjusted(logits, row, history_room);
  ReferenceSample sample;
  if (std::ranges::any_of(adjusted, [](float logit) { return std::isnan(logit); })) {
    sample.kept = params::kNanLogits;
    return sample;
  }
  auto& candidates = sample.candidates;
  for (uint32_t id = 0; id < adjusted.size(); ++id) {
    const float logit = std::min(adjusted[id], std::numeric_limits<float>::max());
    if (!std::isinf(logit)) candidates.push_back({.id = id, .logit = logit});
  }
  if (candidates.empty()) return sample;
  std::sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  });
  const double largest = candidates[0].logit;
  double sum = 0;
  for (const auto& candidate : candidates) sum += std::exp(candidate.logit - largest);
  for (auto& candidate : candidates) candidate.logprob = candidate.logit - largest - std::log(sum);

  const auto random_of = [&](uint32_t use, uint32_t quad) {
    return reference_philox(
        {row.counter, use, quad, 0},
        {static_cast<uint32_t>(options.seed), static_cast<uint32_t>(options.seed >> 32)});
  };
  // The candidates that are kept, and their weights.
  std::vector<size_t> places;
  std::vector<double> weights(candidates.size());
  size_t kept = 1;
  if (uses_stages(options)) {
    std::vector<ReferenceToken> tokens;
    for (uint32_t i = 0; i < candidates.size(); ++i)
      tokens.push_back({.candidate = i, .distance = largest - candidates[i].logit});
    const ReferenceStages stages(tokens, options, random_of(1, 0)[0], row.mirostat_mu);
    sample.edge_margin = stages.edge_margin();
    for (const ReferenceToken& token : stages.tokens()) {
      places.push_back(token.candidate);
      weights[token.candidate] = std::exp(-token.distance);
    }
    kept = places.size();
  } else if (options.temperature > 0) {
    kept = candidates.size();
    if (options.top_k > 0) kept = std::min<size_t>(kept, options.top_k);
    if (options.top_p < 1) {
      double total = 0, before = 0;
      for (size_t i = 0; i < kept; ++i) total += std::exp(candidates[i].logit - largest);
      size_t nucleus = 0;
      while (nucleus < kept && (nucleus == 0 || before < options.top_p)) {
        before += std::exp(candidates[nucleus++].logit - largest) / total;
        sample.edge_margin = std::min(sample.edge_margin, std::fabs(before - options.top_p));
      }
      kept = nucleus;
    }
    if (options.min_p > 0) {
      const auto below = [&](size_t i) {
        const double ratio = std::exp(candidates[i].logit - largest) / options.min_p;
        sample.edge_margin = std::min(sample.edge_margin, std::fabs(ratio - 1));
        return ratio < 1;
      };
      size_t above = 1;
      while (above < kept && !below(above)) ++above;
      kept = above;
    }
  }
  sample.kept = static_cast<uint32_t>(kept);

  for (size_t i = 0; i < kept && places.size() < kept; ++i) {
    places.push_back(i);
    weights[i] = options.temperature == 0
                     ? 1.0
                     : std::exp((candidates[i].logit - largest) / double{options.temperature});
  }
  double total = 0;
  for (const size_t i : places) total += weights[i];
  double best = -std::numeric_limits<double>::infinity();
  size_t drawn = places[0];
  for (const size_t i : places) {
    ReferenceCandidate& candidate = candidates[i];
    candidate.share = weights[i] / total;
    const uint32_t bits = random_of(0, candidate.id / 4)[candidate.id % 4];
    // A greedy row keeps one token, whose score does not matter.
    const double score = std::log(weights[i]) + reference_noise(bits);
    if (score == best) {
      sample.draw_margin = 0;
    } else if (score > best) {
      sample.draw_margin = std::min(1.0, score - best);
      best = score;
      drawn = i;
    } else {
      sample.draw_margin = std::min(sample.draw_margin, best - score);
    }
  }
  sample.id = candidates[drawn].id;
  sample.logprob = candidates[drawn].logprob;
  sample.surprise = -std::log2(candidates[drawn].share);
  return sample;
}

// The probability that a chi-square variable with `degrees` degrees of freedom is at least this
// large: the upper incomplete gamma function, by its series or its continued fraction.
inline double chi_square_p(double chi_square, double degrees) {
  const double a = degrees / 2, x = chi_square / 2;
  if (x <= 0) return 1;
  const double scale = std::exp(a * std::log(x) - x - std::lgamma(a));
  if (x < a + 1) {
    double term = 1 / a, sum = term;
    for (int n = 1; n < 10000 && term > sum * 1e-15; ++n) sum += term *= x / (a + n);
    return 1 - sum * scale;
  }
  double b = x + 1 - a, c = 1e300, d = 1 / b, fraction = d;
  for (int n = 1; n < 10000; ++n) {
    const double numerator = -n * (n - a);
    b += 2;
    d = 1 / (numerator * d + b);
    c = b + numerator / c;
    fraction *= d * c;
    if (std::fabs(d * c - 1) < 1e-15) break;
  }
  return scale * fraction;
}

// How well draws fit the probabilities of a reference: the p-value of Pearson's test. Tokens
// expected fewer than five times are counted as one; drawing a token of probability 0 gives 0.
inline double draws_p(const std::vector<uint32_t>& draws, const ReferenceSample& sample) {
  std::vector<double> seen;
  for (const uint32_t id : draws) {
    if (id >= seen.size()) seen.resize(id + 1);
    ++seen[id];
  }
  double chi_square = 0, bins = 0, rare_expected = 0, rare_seen = 0, accounted = 0;
  for (const auto& candidate : sample.candidates) {
    if (candidate.share == 0) continue;
    const double expected = candidate.share * static_cast<double>(draws.size());
    const double found = candidate.id < seen.size() ? seen[candidate.id] : 0;
    accounted += found;
    if (expected < 5) {
      rare_expected += expected;
      rare_seen += found;
    } else {
      chi_square += (found - expected) * (found - expected) / expected;
      ++bins;
    }
  }
  if (accounted != static_cast<double>(draws.size())) return 0;
  if (rare_expected >= 5) {
    chi_square += (rare_seen - rare_expected) * (rare_seen - rare_expected) / rare_expected;
    ++bins;
  }
  return chi_square_p(chi_square, bins - 1);
}

}  // namespace hearth::testing
