// A model's entry in /v1/models. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/sampling/sampler.h"
#include "engine/scheduling/scheduler.h"

namespace hearth {

struct ModelCard {
  std::string id;
  int64_t created = 0;  // seconds since 1970
  SchedulerLimits limits;
  SamplingOptions sampling;  // what requests have that say nothing about it
  std::string example;       // a message to try the model with; may be empty
};

// Tokens of prompt and answer together: what the context allows, if the pool has blocks for it.
uint64_t longest_sequence(const SchedulerLimits& limits);

nlohmann::json model_json(const ModelCard& card);

}  // namespace hearth
