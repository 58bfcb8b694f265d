#include "tools/replay/replay_setting.h"

#include <nlohmann/json.hpp>
#include <vector>

#include <fmt/format.h>

#include "engine/near_words.h"

namespace hearth {

namespace {

// "16", or all values of a sweep: "1, 2, 4 or 8".
std::string limit_text(const ReplaySetting& setting, SweptLimit limit, uint32_t value) {
  if (!setting.sweep || setting.sweep->limit != limit) return std::to_string(value);
  std::vector<std::string> values;
  for (const uint32_t each : setting.sweep->values) values.push_back(std::to_string(each));
  return joined_with_or(values);
}

}  // namespace

std::string format_heading(const ReplaySetting& setting, const Trace& trace) {
  const SchedulerLimits& limits = setting.limits;
  std::string text =
      fmt::format("{}{} on {}{}\n", setting.simulated ? "Simulation: " : "", setting.model,
                  setting.device, setting.simulated ? ", in virtual time" : "");
  text += fmt::format("At most {} sequences and {} tokens per step; {} KV blocks of {} tokens\n",
                      limit_text(setting, SweptLimit::kMaxSequences, limits.max_sequences),
                      limit_text(setting, SweptLimit::kMaxStepTokens, limits.max_step_tokens),
                      limits.pool_blocks, kTokensPerBlock);
  text += fmt::format("{}: {} requests, {} prompt tokens, {} generated tokens", setting.trace,
                      trace.requests.size(), trace.prompt_tokens(), trace.generated_tokens());
  if (setting.clipped > 0)
    text += fmt::format("; {} of them cut to {} tokens", setting.clipped, setting.longest);
  return text + "\n";
}

std::string format_overhead(const ReplayOverhead& overhead, double measured_seconds) {
  return fmt::format(
      "Measured for {:.1f} s. Not measured: {:.1f} s to load the model, {:.1f} s to warm up "
      "({} buckets, {} kernels).\n",
      measured_seconds, overhead.loading_seconds, overhead.warm_up_seconds, overhead.buckets,
      overhead.kernels);
}

nlohmann::json to_json(const ReplaySetting& setting, const ServiceGoal& goal) {
  nlohmann::json json = {
      {"trace", setting.trace},
      {"model", setting.model},
      {"device", setting.device},
      {"simulated", setting.simulated},
      {"max_sequences", setting.limits.max_sequences},
      {"max_step_tokens", setting.limits.max_step_tokens},
      {"kv_blocks", setting.limits.pool_blocks},
      {"context", setting.longest},
      {"clipped", setting.clipped},
      {"slo", {{"ttft", goal.time_to_first_token}, {"tbt", goal.time_between_tokens}}}};
  if (setting.price_per_hour > 0) json["price_per_hour"] = setting.price_per_hour;
  return json;
}

nlohmann::json to_json(const ReplayOverhead& overhead) {
  return {{"loading_seconds", overhead.loading_seconds},
          {"warm_up_seconds", overhead.warm_up_seconds},
          {"kernels", overhead.kernels},
          {"buckets", overhead.buckets}};
}

}  // namespace hearth
