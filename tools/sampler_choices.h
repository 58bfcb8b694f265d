// The less common samplers that a user set on the command line; see sampling_choices.h. Plain data.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/sampling_options.h"

namespace hearth {

struct SamplerChoices {
  std::optional<float> typical_p, top_n_sigma, top_a, epsilon_cutoff, eta_cutoff;  // cut-offs: 1e-4
  std::optional<float> xtc_probability, xtc_threshold;
  std::optional<float> dynatemp_range, dynatemp_exponent, smoothing_factor, smoothing_curve;
  std::optional<uint32_t> mirostat;
  std::optional<float> mirostat_tau, mirostat_eta;
  std::optional<float> dry_multiplier, dry_base;
  std::optional<uint32_t> dry_allowed_length;
  std::optional<int> dry_penalty_last_n;
  std::optional<SamplerOrder> order;

  // The defaults, with every setting replaced that was given.
  SamplingOptions over(SamplingOptions defaults) const {
    const auto replace = [](auto& value, const auto& given) { value = given.value_or(value); };
    const auto replace_cutoff = [](float& value, const std::optional<float>& given) {
      if (given) value = *given * 1e-4f;
    };
    replace(defaults.typical_p, typical_p);
    replace(defaults.top_n_sigma, top_n_sigma);
    replace(defaults.top_a, top_a);
    replace_cutoff(defaults.epsilon_cutoff, epsilon_cutoff);
    replace_cutoff(defaults.eta_cutoff, eta_cutoff);
    replace(defaults.xtc_probability, xtc_probability);
    replace(defaults.xtc_threshold, xtc_threshold);
    replace(defaults.dynatemp_range, dynatemp_range);
    replace(defaults.dynatemp_exponent, dynatemp_exponent);
    replace(defaults.smoothing_factor, smoothing_factor);
    replace(defaults.smoothing_curve, smoothing_curve);
    replace(defaults.mirostat, mirostat);
    replace(defaults.mirostat_tau, mirostat_tau);
    replace(defaults.mirostat_eta, mirostat_eta);
    replace(defaults.dry_multiplier, dry_multiplier);
    replace(defaults.dry_base, dry_base);
    replace(defaults.dry_allowed_length, dry_allowed_length);
    replace(defaults.dry_penalty_last_n, dry_penalty_last_n);
    replace(defaults.order, order);
    return defaults;
  }
};

}  // namespace hearth
