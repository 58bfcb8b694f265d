// The results of a replay under one policy, as numbers and as JSON, and the results of several
// policies as a table. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/model/step_executor.h"
#include "tools/replay/machine_load.h"
#include "tools/replay/request_timing.h"
#include "tools/replay/step_tally.h"
#include "tools/replay/summary.h"

namespace hearth {

// What a request generated. Empty in a simulation, whose tokens are made up.
struct ReplayAnswer {
  std::string text;
  double logprob = 0;  // of all its tokens together
};

// The measurements of one replay.
struct ReplayRun {
  std::vector<RequestTiming> requests;  // in the trace's order
  std::vector<uint32_t> cached_tokens;  // per prompt: tokens found in the prefix cache
  double begin = 0;                     // when the first request was due
  std::vector<ReplayAnswer> answers;    // per request
  uint64_t prompt_tokens = 0;           // as submitted
  // Accepted proposals are tokens without a time of their own: they arrive with the one after them.
  uint64_t untimed_tokens = 0;
  uint64_t proposed_tokens = 0, accepted_tokens = 0;  // by speculation
  uint64_t query_tokens = 0, hit_tokens = 0;          // looked up and found in the prefix cache
  StepUse steps;
  SwapTraffic swaps;
  std::optional<CpuUse> cpu;  // of the host; nothing where the system does not say
  uint32_t max_sequences = 1, pool_blocks = 1;
};

struct ReplayReport {
  std::string policy;    // its name, and the switches that were changed
  std::string switches;  // every switch
  uint64_t requests = 0, failed = 0, refused = 0;
  uint64_t prompt_tokens = 0, generated_tokens = 0;
  double makespan_seconds = 0;  // from the first arrival to the last token
  double throughput_tokens_per_s = 0;
  Summary ttft, tpot, e2e;  // seconds, over requests
  Summary tbt;              // seconds, over all tokens but the first of each request
  double goodput = 0;       // requests per second that met the goal
  uint64_t met_goal = 0;
  double busy_share = 0;  // of the time from the first arrival to the last step's end
  double occupancy = 0, padding_share = 0, prefix_hit_share = 0;
  double kv_used_share = 0, kv_waste_share = 0, kv_shared_share = 0;
  double kv_waste_tokens_per_sequence = 0;
  uint64_t preemptions_recompute = 0, preemptions_swap = 0, steps = 0;
  SwapTraffic swaps;
  // Money per million generated tokens, over the makespan; nothing without a price or tokens.
  std::optional<double> cost_per_million_tokens;

  uint64_t preemptions() const { return preemptions_recompute + preemptions_swap; }
  // Both directions, while blocks were moving; nothing if none moved or the time is not known.
  std::optional<double> swap_bytes_per_s() const;
};

// `price_per_hour` is what the device costs; 0: not known.
ReplayReport make_report(const ReplayRun& run, const ServiceGoal& goal, double price_per_hour = 0);

nlohmann::json to_json(const ReplayReport& report);
// The times of every request, in the trace's order.
nlohmann::json requests_to_json(const ReplayRun& run);

// One row per number, one column per policy.
std::string format_table(std::span<const ReplayReport> reports, const ServiceGoal& goal);
// Lines that explain the table's abbreviations and intervals.
std::string table_legend(std::span<const ReplayReport> reports);

}  // namespace hearth
