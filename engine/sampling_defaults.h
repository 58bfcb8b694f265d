// The sampling settings that a request starts from, the same for every front end: the model's own,
// else Hearth's. A setting that a user gives replaces the default, one by one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/sampling_options.h"
#include "engine/weights/metadata.h"

namespace hearth {

// For models that say nothing, and for front ends without a model at hand.
inline constexpr SamplingOptions kHearthSampling{.temperature = 0.7f, .min_p = 0.05f};

struct SamplingDefaults {
  SamplingOptions options = kHearthSampling;
  std::vector<std::string_view> from_model;  // the settings the model gives: "temperature", "top_k"
  std::string ignored;  // which of its values make no sense, in one line; empty if all are good
};

// Reads the keys general.sampling.*, which GGUF files have and which stand for
// generation_config.json in a Hugging Face folder. A model that gives a temperature or a filter
// (top_k, top_p, min_p) has these four to itself: what it leaves out is off, because its authors
// tuned them together. A value of the wrong kind, not finite or out of range is ignored. Pure.
SamplingDefaults sampling_defaults(const Metadata& metadata);

}  // namespace hearth
