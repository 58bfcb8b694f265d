#include "tools/server/model_card.h"

#include <algorithm>

#include <fmt/format.h>

namespace hearth {
namespace {

using nlohmann::json;

json sampling_json(const SamplingOptions& sampling) {
  // As a person would write them: 0.7, not 0.699999988079071.
  const auto number = [](float value) { return json::parse(fmt::format("{}", value)); };
  return {{"temperature", number(sampling.temperature)},
          {"top_k", sampling.top_k},
          {"top_p", number(sampling.top_p)},
          {"min_p", number(sampling.min_p)},
          {"repetition_penalty", number(sampling.repetition_penalty)},
          {"presence_penalty", number(sampling.presence_penalty)},
          {"frequency_penalty", number(sampling.frequency_penalty)}};
}

}  // namespace

uint64_t longest_sequence(const SchedulerLimits& limits) {
  return std::min<uint64_t>(limits.context, uint64_t{limits.pool_blocks} * kTokensPerBlock);
}

json model_json(const ModelCard& card) {
  json object = {{"id", card.id},
                 {"object", "model"},
                 {"created", card.created},
                 {"owned_by", "hearth"},
                 {"max_model_len", longest_sequence(card.limits)},
                 {"sampling", sampling_json(card.sampling)}};
  if (!card.example.empty()) object["example"] = card.example;
  return object;
}

}  // namespace hearth
