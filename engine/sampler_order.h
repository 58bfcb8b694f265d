// The order in which a request's samplers run, by the names that llama.cpp's and
// text-generation-webui's APIs give them. Plain data.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/result.h"

namespace hearth {

// The numbers are those of params/sampling.h's stages.
enum class SamplerKind : uint8_t {
  kNone,
  kTopNSigma,
  kTopK,
  kTypicalP,
  kTopP,
  kMinP,
  kTopA,
  kEpsilonCutoff,
  kEtaCutoff,
  kXtc,
  kTemperature,
  kSmoothing,
};

inline constexpr size_t kSamplerKinds = 11;

// Penalties come first and DRY after them, if they are listed at all; then the samplers, up to the
// first kNone. A sampler that is not listed is off, whatever its settings say.
struct SamplerOrder {
  bool penalties = true, dry = true;
  std::array<SamplerKind, kSamplerKinds> samplers = {
      SamplerKind::kTopNSigma,     SamplerKind::kTopK,      SamplerKind::kTypicalP,
      SamplerKind::kTopP,          SamplerKind::kMinP,      SamplerKind::kTopA,
      SamplerKind::kEpsilonCutoff, SamplerKind::kEtaCutoff, SamplerKind::kXtc,
      SamplerKind::kTemperature,   SamplerKind::kSmoothing};

  bool operator==(const SamplerOrder&) const = default;
  constexpr bool lists(SamplerKind kind) const {
    for (const SamplerKind each : samplers)
      if (each == kind) return true;
    return false;
  }
};

// The order of a list of names. Names of the same sampler may repeat each other, as "temperature"
// and "dynamic_temperature"; the first one counts. An error says which name is unknown or out of
// place.
Result<SamplerOrder> parse_sampler_order(std::span<const std::string> names);

// The names of an order, separated by ";" as llama.cpp's command line does.
std::string sampler_order_text(const SamplerOrder& order);

}  // namespace hearth
