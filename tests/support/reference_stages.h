// The samplers of shaders/sample_stages.comp, in double and as simply as possible. Each stage gets
// the tokens that are left, in the row's order, with their distances below the first one's logit;
// their probabilities are in proportion to exp(-distance).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/sampling/stages.h"

namespace hearth::testing {

struct ReferenceToken {
  uint32_t candidate = 0;  // its place in the row's order
  double distance = 0;
};

class ReferenceStages {
 public:
  // `random` is 32 bits that decide whether XTC applies.
  ReferenceStages(std::vector<ReferenceToken> tokens, const SamplingOptions& options,
                  uint32_t random, double mu)
      : tokens_(std::move(tokens)), options_(options) {
    const bool mirostat = uses_mirostat(options);
    for (const SamplerKind kind : options.order.samplers) {
      if (kind == SamplerKind::kTemperature) temperature();
      if (kind == SamplerKind::kSmoothing) smoothing();
      if (!mirostat) drop(kind, random);
    }
    if (mirostat) keep_within(mu * std::log(2.0) - log_sum());
  }

  // What is left.
  const std::vector<ReferenceToken>& tokens() const { return tokens_; }
  // How far any stage was from keeping another set of tokens.
  double edge_margin() const { return edge_margin_; }
  // Bits of surprise at the i-th token left.
  double surprise(size_t i) const { return (tokens_[i].distance + log_sum()) / std::log(2.0); }

 private:
  double log_sum() const {
    double sum = 0;
    for (const ReferenceToken& token : tokens_) sum += std::exp(-token.distance);
    return std::log(sum);
  }
  double probability(const ReferenceToken& token) const {
    return std::exp(-token.distance - log_sum());
  }
  double mean_distance() const {
    double mean = 0;
    const double log_all = log_sum();
    for (const ReferenceToken& token : tokens_)
      mean += std::exp(-token.distance - log_all) * token.distance;
    return mean;
  }
  double entropy() const { return log_sum() + mean_distance(); }

  void drop(SamplerKind kind, uint32_t random) {
    const SamplingOptions& o = options_;
    if (kind == SamplerKind::kTopNSigma && o.top_n_sigma > 0) keep_within(o.top_n_sigma * sigma());
    if (kind == SamplerKind::kTopK && o.top_k > 0 && o.top_k < tokens_.size())
      tokens_.resize(o.top_k);
    if (kind == SamplerKind::kTypicalP && o.typical_p < 1) typical();
    if (kind == SamplerKind::kTopP && o.top_p < 1) top_p();
    if (kind == SamplerKind::kMinP && o.min_p > 0) keep_within(-std::log(double{o.min_p}));
    if (kind == SamplerKind::kTopA && o.top_a > 0) {
      const double largest = probability(tokens_[0]);
      keep_probable(o.top_a * largest * largest);
    }
    if (kind == SamplerKind::kEpsilonCutoff && o.epsilon_cutoff > 0)
      keep_probable(o.epsilon_cutoff);
    if (kind == SamplerKind::kEtaCutoff && o.eta_cutoff > 0)
      keep_probable(std::min<double>(o.eta_cutoff, std::sqrt(o.eta_cutoff) * std::exp(-entropy())));
    if (kind == SamplerKind::kXtc && std::ldexp(random, -32) < o.xtc_probability) xtc();
  }

  // Drops tokens further than `limit` below the first, which stays.
  void keep_within(double limit) {
    limit = std::max(limit, 0.0);
    size_t kept = 1;
    while (kept < tokens_.size() && tokens_[kept].distance <= limit) ++kept;
    if (limit > 0)
      for (const size_t i : {kept - 1, kept})
        if (i < tokens_.size() && i > 0) note_margin(tokens_[i].distance - limit);
    tokens_.resize(kept);
  }
  void keep_probable(double least) { keep_within(-std::log(least) - log_sum()); }

  // Of the distances in units of 2^-14, at most 256.
  double sigma() const {
    const auto place = [](double distance) {
      return std::nearbyint(std::min(distance, 256.0) * 16384) / 16384;
    };
    double mean = 0, squares = 0;
    const auto count = static_cast<double>(tokens_.size());
    for (const ReferenceToken& token : tokens_) mean += place(token.distance) / count;
    for (const ReferenceToken& token : tokens_)
      squares += (place(token.distance) - mean) * (place(token.distance) - mean) / count;
    return std::sqrt(squares);
  }

  void top_p() {
    const double log_all = log_sum();
    size_t kept = 0;
    for (double sum = 0; kept < tokens_.size() && (kept == 0 || sum < options_.top_p); ++kept) {
      sum += std::exp(-tokens_[kept].distance - log_all);
      note_margin(sum - options_.top_p);
    }
    tokens_.resize(kept);
  }

  // Tokens whose surprise is nearest to the entropy, until they have the share; tokens that are
  // equally near stay or go together.
  void typical() {
    const double center = mean_distance(), log_all = log_sum();
    std::vector<ReferenceToken> nearest = tokens_;
    const auto deviation = [&](const ReferenceToken& token) {
      return std::fabs(token.distance - center);
    };
    std::ranges::stable_sort(nearest, {}, deviation);
    size_t kept = 0;
    for (double sum = 0; kept < nearest.size() && (kept == 0 || sum < options_.typical_p); ++kept) {
      sum += std::exp(-nearest[kept].distance - log_all);
      // Among equals only the last sum counts.
      if (kept + 1 == nearest.size() || deviation(nearest[kept]) != deviation(nearest[kept + 1]))
        note_margin(sum - options_.typical_p);
    }
    const double reach = deviation(nearest[kept - 1]);
    for (const ReferenceToken& token : nearest)
      if (token.distance != nearest[kept - 1].distance) note_margin(deviation(token) - reach);
    std::erase_if(tokens_, [&](const ReferenceToken& token) { return deviation(token) > reach; });
    begin_at_first();
  }

  // Drops the tokens above the threshold except the least probable of them.
  void xtc() {
    if (options_.xtc_threshold > 0.5f) return;
    const double limit = -std::log(double{options_.xtc_threshold}) - log_sum();
    double last = -1;
    for (const ReferenceToken& token : tokens_) {
      if (token.distance <= limit) last = token.distance;
      note_margin(token.distance - limit);
    }
    std::erase_if(tokens_, [&](const ReferenceToken& token) { return token.distance < last; });
    begin_at_first();
  }

  void temperature() {
    double temperature = options_.temperature;
    if (options_.dynatemp_range > 0) {
      const double low = std::max(0.0f, options_.temperature - options_.dynatemp_range);
      const double high = options_.temperature + options_.dynatemp_range;
      temperature = low;
      if (tokens_.size() > 1) {
        const double share =
            std::clamp(entropy() / std::log(static_cast<double>(tokens_.size())), 0.0, 1.0);
        temperature = low + (high - low) * std::pow(share, double{options_.dynatemp_exponent});
      }
    }
    for (ReferenceToken& token : tokens_) token.distance /= std::max(temperature, 1e-5);
  }

  void smoothing() {
    if (options_.smoothing_factor <= 0) return;
    const double curve = options_.smoothing_curve, factor = options_.smoothing_factor;
    for (ReferenceToken& token : tokens_) {
      const double d = token.distance;
      token.distance = factor * ((3 - curve) / 2 * d * d + (curve - 1) / 2 * d * d * d);
    }
  }

  void begin_at_first() {
    const double first = tokens_[0].distance;
    for (ReferenceToken& token : tokens_) token.distance -= first;
  }
  void note_margin(double difference) {
    edge_margin_ = std::min(edge_margin_, std::fabs(difference));
  }

  std::vector<ReferenceToken> tokens_;
  const SamplingOptions& options_;
  double edge_margin_ = 1;
};

}  // namespace hearth::testing
