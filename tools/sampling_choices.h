// The sampling settings that a user gave, as options of the command line or with /set in a chat;
// the others come from the model (engine/sampling_defaults.h). Plain data.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/sampling/sampler.h"
#include "tools/sampler_choices.h"

namespace hearth {

struct SamplingChoices {
  std::optional<float> temperature, top_p, min_p;
  std::optional<uint32_t> top_k;
  std::optional<float> repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<uint64_t> seed;
  SamplerChoices samplers;

  // The defaults, with every setting replaced that was given.
  SamplingOptions over(SamplingOptions defaults) const {
    const auto replace = [](auto& value, const auto& given) { value = given.value_or(value); };
    replace(defaults.temperature, temperature);
    replace(defaults.top_k, top_k);
    replace(defaults.top_p, top_p);
    replace(defaults.min_p, min_p);
    replace(defaults.repetition_penalty, repetition_penalty);
    replace(defaults.presence_penalty, presence_penalty);
    replace(defaults.frequency_penalty, frequency_penalty);
    replace(defaults.seed, seed);
    return samplers.over(defaults);
  }
};

}  // namespace hearth
