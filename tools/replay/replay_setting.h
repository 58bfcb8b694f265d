// What a replay ran on, and what it cost besides the measured part: the head and the foot of its
// report. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "engine/scheduling/scheduler.h"
#include "tools/replay/request_timing.h"
#include "tools/replay/sweep.h"
#include "tools/replay/trace.h"

namespace hearth {

struct ReplaySetting {
  std::string trace;          // as the user named it
  std::string model, device;  // for people
  bool simulated = false;
  SchedulerLimits limits;  // of a sweep: those of its largest value
  std::optional<Sweep> sweep;
  double price_per_hour = 0;  // of the device; 0: not known
  uint32_t longest = 0;       // tokens that a sequence may have
  size_t clipped = 0;         // requests that were longer
};

// Real time that no policy is charged for.
struct ReplayOverhead {
  double loading_seconds = 0;  // the model
  double warm_up_seconds = 0;
  size_t kernels = 0;  // compiled, or read from the cache on disk
  size_t buckets = 0;  // recorded
};

// The lines above the table.
std::string format_heading(const ReplaySetting& setting, const Trace& trace);
// One line below it. `measured_seconds` is the sum over policies.
std::string format_overhead(const ReplayOverhead& overhead, double measured_seconds);

nlohmann::json to_json(const ReplaySetting& setting, const ServiceGoal& goal);
nlohmann::json to_json(const ReplayOverhead& overhead);

}  // namespace hearth
