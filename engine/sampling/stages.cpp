#include "engine/sampling/stages.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace hearth {
namespace {

constexpr auto stage_of(SamplerKind kind) { return static_cast<uint32_t>(kind); }
static_assert(stage_of(SamplerKind::kTopNSigma) == params::kStageTopNSigma);
static_assert(stage_of(SamplerKind::kTopK) == params::kStageTopK);
static_assert(stage_of(SamplerKind::kTypicalP) == params::kStageTypical);
static_assert(stage_of(SamplerKind::kTopP) == params::kStageTopP);
static_assert(stage_of(SamplerKind::kMinP) == params::kStageMinP);
static_assert(stage_of(SamplerKind::kTopA) == params::kStageTopA);
static_assert(stage_of(SamplerKind::kEpsilonCutoff) == params::kStageEpsilon);
static_assert(stage_of(SamplerKind::kEtaCutoff) == params::kStageEta);
static_assert(stage_of(SamplerKind::kXtc) == params::kStageXtc);
static_assert(stage_of(SamplerKind::kTemperature) == params::kStageTemperature);
static_assert(stage_of(SamplerKind::kSmoothing) == params::kStageSmoothing);
static_assert((kSamplerKinds + 1) * params::kStageBits <= 64);

struct StageRange {
  const char* name;
  float SamplingOptions::*value;
  float least, most;
};
constexpr StageRange kStageRanges[] = {
    {"typical_p", &SamplingOptions::typical_p, 0, 1},
    {"top_n_sigma", &SamplingOptions::top_n_sigma, -1, 1000},
    {"top_a", &SamplingOptions::top_a, 0, 1},
    {"epsilon_cutoff", &SamplingOptions::epsilon_cutoff, 0, 1},
    {"eta_cutoff", &SamplingOptions::eta_cutoff, 0, 1},
    {"xtc_probability", &SamplingOptions::xtc_probability, 0, 1},
    {"xtc_threshold", &SamplingOptions::xtc_threshold, 0, 1},
    {"dynatemp_range", &SamplingOptions::dynatemp_range, 0, 1e6f},
    {"dynatemp_exponent", &SamplingOptions::dynatemp_exponent, 0.01f, 100},
    {"smoothing_factor", &SamplingOptions::smoothing_factor, 0, 100},
    // Beyond 3 the most probable token would lose to less probable ones.
    {"smoothing_curve", &SamplingOptions::smoothing_curve, 1, 3},
    {"mirostat_tau", &SamplingOptions::mirostat_tau, 0, 100},
    {"mirostat_eta", &SamplingOptions::mirostat_eta, 0, 10},
    {"dry_multiplier", &SamplingOptions::dry_multiplier, 0, 100},
    {"dry_base", &SamplingOptions::dry_base, 1, 100},
};

bool is_on(SamplerKind kind, const SamplingOptions& options) {
  switch (kind) {
    case SamplerKind::kTopNSigma:
      return options.top_n_sigma > 0;
    case SamplerKind::kTopK:
      return options.top_k > 0;
    case SamplerKind::kTypicalP:
      return options.typical_p < 1;
    case SamplerKind::kTopP:
      return options.top_p < 1;
    case SamplerKind::kMinP:
      return options.min_p > 0;
    case SamplerKind::kTopA:
      return options.top_a > 0;
    case SamplerKind::kEpsilonCutoff:
      return options.epsilon_cutoff > 0;
    case SamplerKind::kEtaCutoff:
      return options.eta_cutoff > 0;
    case SamplerKind::kXtc:
      return options.xtc_probability > 0 && options.xtc_threshold <= 0.5f;
    case SamplerKind::kTemperature:
      return options.temperature != 1 || options.dynatemp_range > 0;
    case SamplerKind::kSmoothing:
      return options.smoothing_factor > 0;
    case SamplerKind::kNone:
      break;
  }
  return false;
}

bool drops_tokens(SamplerKind kind) {
  return kind != SamplerKind::kTemperature && kind != SamplerKind::kSmoothing;
}

// The samplers that sample_pick has, in its order.
constexpr std::array kPickOrder = {SamplerKind::kTopK, SamplerKind::kTopP, SamplerKind::kMinP,
                                   SamplerKind::kTemperature};

float log_or_minus_infinity(float value) {
  return value > 0 ? std::log(value) : -std::numeric_limits<float>::infinity();
}

}  // namespace

Status check_stages(const SamplingOptions& options) {
  for (const auto& [name, value, least, most] : kStageRanges)
    if (!(options.*value >= least && options.*value <= most))
      return invalid(
          fmt::format("{} must be from {} to {}, not {}", name, least, most, options.*value));
  if (options.mirostat != 0 && options.mirostat != 2)
    return invalid(fmt::format("mirostat must be 0 or 2, not {}", options.mirostat));
  if (options.dry_allowed_length == 0) return invalid("dry_allowed_length must be at least 1");
  if (options.dry_penalty_last_n < -1)
    return invalid(
        fmt::format("dry_penalty_last_n must be at least -1, not {}", options.dry_penalty_last_n));
  return {};
}

SamplingOptions only_listed(SamplingOptions options) {
  const SamplingOptions off;
  const SamplerOrder& order = options.order;
  if (!order.penalties) {
    options.repetition_penalty = off.repetition_penalty;
    options.presence_penalty = off.presence_penalty;
    options.frequency_penalty = off.frequency_penalty;
  }
  if (!order.dry) options.dry_multiplier = off.dry_multiplier;
  const auto keep = [&](SamplerKind kind, auto... members) {
    if (!order.lists(kind)) ((options.*members = off.*members), ...);
  };
  keep(SamplerKind::kTopNSigma, &SamplingOptions::top_n_sigma);
  keep(SamplerKind::kTopK, &SamplingOptions::top_k);
  keep(SamplerKind::kTypicalP, &SamplingOptions::typical_p);
  keep(SamplerKind::kTopP, &SamplingOptions::top_p);
  keep(SamplerKind::kMinP, &SamplingOptions::min_p);
  keep(SamplerKind::kTopA, &SamplingOptions::top_a);
  keep(SamplerKind::kEpsilonCutoff, &SamplingOptions::epsilon_cutoff);
  keep(SamplerKind::kEtaCutoff, &SamplingOptions::eta_cutoff);
  keep(SamplerKind::kXtc, &SamplingOptions::xtc_probability);
  keep(SamplerKind::kTemperature, &SamplingOptions::temperature, &SamplingOptions::dynatemp_range);
  keep(SamplerKind::kSmoothing, &SamplingOptions::smoothing_factor);
  return options;
}

bool uses_mirostat(const SamplingOptions& options) {
  return options.mirostat == 2 && options.temperature >= kLeastTemperature;
}

bool uses_dry(const SamplingOptions& options) {
  return options.dry_multiplier > 0 && options.dry_penalty_last_n != 0;
}

bool uses_stages(const SamplingOptions& options) {
  if (options.temperature < kLeastTemperature) return false;
  if (uses_mirostat(options) || options.dynatemp_range > 0) return true;
  size_t next = 0;
  for (const SamplerKind kind : options.order.samplers) {
    if (!is_on(kind, options)) continue;
    while (next < kPickOrder.size() && kPickOrder[next] != kind) ++next;
    if (next == kPickOrder.size()) return true;
  }
  return false;
}

params::SamplingStages make_stages(const SamplingOptions& options) {
  uint64_t stages = 0;
  uint32_t count = 0;
  const auto add = [&](uint32_t stage) {
    stages |= uint64_t{stage} << params::kStageBits * count++;
  };
  const bool mirostat = uses_mirostat(options);
  for (const SamplerKind kind : options.order.samplers)
    if (is_on(kind, options) && !(mirostat && drops_tokens(kind))) add(stage_of(kind));
  if (mirostat) add(params::kStageMirostat);
  // Both as text-generation-webui defines them.
  const float square = (3 - options.smoothing_curve) / 2, cube = (options.smoothing_curve - 1) / 2;
  constexpr double kOdds = 4294967296.0;
  return {.order_low = static_cast<uint32_t>(stages),
          .order_high = static_cast<uint32_t>(stages >> 32),
          .sigmas = options.top_n_sigma,
          .top_k = options.top_k,
          .typical_p = options.typical_p,
          .top_p = options.top_p,
          .log_min_p = log_or_minus_infinity(options.min_p),
          .log_top_a = log_or_minus_infinity(options.top_a),
          .log_epsilon = log_or_minus_infinity(options.epsilon_cutoff),
          .log_eta = log_or_minus_infinity(options.eta_cutoff),
          .log_xtc_threshold = log_or_minus_infinity(options.xtc_threshold),
          .xtc_odds = options.xtc_probability >= 1
                          ? 0xffffffff
                          : static_cast<uint32_t>(double{options.xtc_probability} * kOdds),
          .temperature_low = std::max(0.0f, options.temperature - options.dynatemp_range),
          .temperature_high = options.temperature + options.dynatemp_range,
          .temperature_exponent = options.dynatemp_exponent,
          .smoothing_square = options.smoothing_factor * square,
          .smoothing_cube = options.smoothing_factor * cube,
          .mirostat_tau = options.mirostat_tau,
          .mirostat_eta = options.mirostat_eta,
          .mirostat_mu = 2 * options.mirostat_tau,
          .mirostat_read_slot = params::kNoSlot,
          .mirostat_write_slot = params::kNoSlot};
}

}  // namespace hearth
