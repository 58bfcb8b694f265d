#include "engine/ops/rope_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

namespace hearth {
namespace {

constexpr double kTurn = 2.0 * std::numbers::pi;  // in radians

bool positive(double value) { return std::isfinite(value) && value > 0.0; }

Error invalid_rope(std::string message) {
  return {ErrorKind::kInvalid, "rope: " + std::move(message)};
}

Status check_factors(const RopeTableInfo& info, std::span<const float> factors) {
  if (factors.size() != info.dims / 2)
    return invalid_rope(fmt::format("{} frequency factors where {} dimensions need {}",
                                    factors.size(), info.dims, info.dims / 2));
  if (!std::all_of(factors.begin(), factors.end(), [](float f) { return positive(double{f}); }))
    return invalid_rope("a frequency factor is not a positive number");
  return {};
}

Status check(const RopeTableInfo& info) {
  if (info.dims == 0 || info.dims % 2 != 0)
    return invalid_rope(
        fmt::format("{} dimensions; a positive even number is possible", info.dims));
  if (!positive(info.base) || info.base <= 1.0)
    return invalid_rope(fmt::format("base {}; it must be more than 1", info.base));
  if (!std::isfinite(info.attention_factor) || info.attention_factor < 0.0)
    return invalid_rope(fmt::format("attention factor {}", info.attention_factor));
  const bool scaled = info.scaling == RopeScaling::kLinear ||
                      info.scaling == RopeScaling::kLlama3 || info.scaling == RopeScaling::kYarn;
  if (scaled && !positive(info.factor)) return invalid_rope(fmt::format("factor {}", info.factor));
  const bool stretches = info.scaling == RopeScaling::kLlama3 ||
                         info.scaling == RopeScaling::kYarn ||
                         info.scaling == RopeScaling::kLongRope;
  if (stretches && info.original_context < 2)
    return invalid_rope("this scaling needs the original context length");
  switch (info.scaling) {
    case RopeScaling::kNone:
    case RopeScaling::kLinear:
      return {};
    case RopeScaling::kFactors:
      return check_factors(info, info.factors);
    case RopeScaling::kLlama3:
      if (!positive(info.low_freq_factor) || !positive(info.high_freq_factor) ||
          info.high_freq_factor <= info.low_freq_factor)
        return invalid_rope(fmt::format("low and high frequency factors {} and {}",
                                        info.low_freq_factor, info.high_freq_factor));
      return {};
    case RopeScaling::kYarn:
      if (!positive(info.beta_fast) || !positive(info.beta_slow) || !std::isfinite(info.ext_factor))
        return invalid_rope(fmt::format("YaRN with beta {} to {} and ext factor {}", info.beta_fast,
                                        info.beta_slow, info.ext_factor));
      return {};
    case RopeScaling::kLongRope:
      HEARTH_TRY(check_factors(info, info.factors));
      return check_factors(info, info.long_factors);
  }
  return {};
}

// The (fractional) index of the pair that makes `turns` turns within the original context.
double yarn_pair(const RopeTableInfo& info, double turns) {
  return info.dims * std::log(info.original_context / (turns * kTurn)) /
         (2.0 * std::log(info.base));
}

double llama3_frequency(const RopeTableInfo& info, double frequency) {
  // It depends on the number of turns within the original context: with many, the model has seen
  // every angle; with fewer than low_freq_factor, positions have to be scaled.
  const double waves = info.original_context * frequency / kTurn;
  const double keep = std::clamp(
      (waves - info.low_freq_factor) / (info.high_freq_factor - info.low_freq_factor), 0.0, 1.0);
  return frequency * (keep + (1.0 - keep) / info.factor);
}

double prescribed_attention(const RopeTableInfo& info) {
  if (info.scaling == RopeScaling::kYarn)
    return info.factor <= 1.0 ? 1.0 : 0.1 * std::log(info.factor) + 1.0;
  if (info.scaling == RopeScaling::kLongRope && info.model_context > info.original_context) {
    const double original = info.original_context;
    return std::sqrt(1.0 + std::log(info.model_context / original) / std::log(original));
  }
  return 1.0;
}

}  // namespace

std::vector<double> rope_frequencies(const RopeTableInfo& info) {
  double low = 0.0, high = 0.0;  // YaRN's ramp, in pairs
  if (info.scaling == RopeScaling::kYarn) {
    low = yarn_pair(info, info.beta_fast);
    high = yarn_pair(info, info.beta_slow);
    if (info.truncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, info.dims - 1.0);
    if (high <= low) high = low + 0.001;
  }
  const bool long_context =
      info.scaling == RopeScaling::kLongRope && info.context > info.original_context;
  const std::span<const float> factors = long_context ? info.long_factors : info.factors;

  std::vector<double> frequencies(info.dims / 2);
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double pair = static_cast<double>(i);
    double& frequency = frequencies[i];
    frequency = std::pow(info.base, -2.0 * pair / info.dims);
    switch (info.scaling) {
      case RopeScaling::kNone:
        break;
      case RopeScaling::kLinear:
        frequency /= info.factor;
        break;
      case RopeScaling::kFactors:
      case RopeScaling::kLongRope:
        frequency /= double{factors[i]};
        break;
      case RopeScaling::kLlama3:
        frequency = llama3_frequency(info, frequency);
        break;
      case RopeScaling::kYarn: {
        const double ramp = std::clamp((pair - low) / (high - low), 0.0, 1.0);
        const double keep = (1.0 - ramp) * info.ext_factor;
        frequency *= keep + (1.0 - keep) / info.factor;
        break;
      }
    }
  }
  return frequencies;
}

std::vector<uint32_t> rope_table_words(const RopeTable& table) {
  std::vector<uint32_t> words = {std::bit_cast<uint32_t>(table.attention_scale), 0, 0, 0};
  for (const uint64_t turns : table.turns) {
    words.push_back(static_cast<uint32_t>(turns));
    words.push_back(static_cast<uint32_t>(turns >> 32));
  }
  return words;
}

Result<RopeTable> make_rope_table(const RopeTableInfo& info) {
  HEARTH_TRY(check(info));
  const double attention =
      info.attention_factor > 0.0 ? info.attention_factor : prescribed_attention(info);
  RopeTable table{.turns = {}, .attention_scale = static_cast<float>(attention)};
  for (const double frequency : rope_frequencies(info)) {
    // Whole turns have no effect at integer positions.
    const double turns = frequency / kTurn;
    table.turns.push_back(static_cast<uint64_t>(std::ldexp(turns - std::floor(turns), 64)));
  }
  return table;
}

}  // namespace hearth
