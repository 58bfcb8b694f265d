// The events of /events as JSON: written by the server, read by a dashboard that shows a remote
// engine. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "engine/scheduling/policy.h"
#include "engine/scheduling/scheduler.h"
#include "engine/step_record.h"
#include "runtime/result.h"

namespace hearth {

// The event named kHelloEvent comes first, and again whenever policy, limits or pace change or the
// engine is paused. Events of steps have no name.
inline constexpr std::string_view kHelloEvent = "hello";
struct EngineHello {
  std::string model, device;
  SchedulerLimits limits;
  Policy policy;
  uint64_t instance = 0;      // changes when the server restarts: clock and request ids begin again
  double now = 0;             // seconds on the clock that steps use
  uint32_t vocabulary = 0;    // tokens; 0: not known
  bool controllable = false;  // POST /control works
  SchedulerLimits most;       // what limits can be raised to
  bool paused = false;
  double pace = 0;  // slow motion, in steps per second; 0: full speed
};

// The event named kCountsEvent has the counts of requests and blocks, if they change without a
// step.
inline constexpr std::string_view kCountsEvent = "counts";

// All switches by name, with their values as set_switch() takes them.
nlohmann::json policy_json(const Policy& policy);
nlohmann::json hello_event(const EngineHello& hello);
nlohmann::json counts_event(const SchedulerCounts& counts);
nlohmann::json step_event(const StepRecord& record);

// The inverse, without the times of kernels. A missing field is 0 or empty, so that events of other
// versions can be read. A field of the wrong type is an error that names it.
Result<EngineHello> parse_hello_event(std::string_view text);
Result<StepRecord> parse_step_event(std::string_view text);
Result<StepRecord> read_step_event(const nlohmann::json& object);
// Fields that are missing keep their value in `before`.
Result<SchedulerCounts> parse_counts_event(std::string_view text, SchedulerCounts before);

}  // namespace hearth
