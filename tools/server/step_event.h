// What /events says, as JSON, and read back by whoever shows a remote engine. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "engine/scheduling/policy.h"
#include "engine/scheduling/scheduler.h"
#include "engine/step_record.h"
#include "runtime/result.h"

namespace hearth {

// An event of the name kHelloEvent comes first; those of steps have none.
inline constexpr std::string_view kHelloEvent = "hello";
struct EngineHello {
  std::string model, device;
  SchedulerLimits limits;
  Policy policy;
  uint64_t instance = 0;  // another number: another engine, whose clock and ids begin anew
  double now = 0;         // seconds on the engine's clock, which those of its steps count on
};

// One of the name kCountsEvent tells of requests and blocks where no step follows that would.
inline constexpr std::string_view kCountsEvent = "counts";

nlohmann::json hello_event(const EngineHello& hello);
nlohmann::json counts_event(const SchedulerCounts& counts);
nlohmann::json step_event(const StepRecord& record);

// The inverse: all but the times of kernels comes back. What is missing is 0 or empty, so that
// other versions can be read; what is there must be of its kind, or the error names it in one line.
Result<EngineHello> parse_hello_event(std::string_view text);
Result<StepRecord> parse_step_event(std::string_view text);
// What it does not tell stays as it was.
Result<SchedulerCounts> parse_counts_event(std::string_view text, SchedulerCounts before);

}  // namespace hearth
