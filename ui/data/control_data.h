// The rows of the control panel: an engine's policy switches and limits, and how a click changes
// them. Plain data and pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/scheduling/policy.h"
#include "engine/scheduling/scheduler.h"

namespace hearth {

// Describes a named policy, or "custom", in one line.
std::string_view policy_description(std::string_view name);

// A policy switch and its current value.
struct SwitchRow {
  std::string_view name, description;
  std::span<const std::string_view> values;  // empty if the switch takes a number
  size_t selected = 0;                       // index into values
  uint32_t number = 0;
};
std::vector<SwitchRow> switch_rows(const Policy& policy);
// The policy with one switch changed. Unchanged if there is no such switch or value.
Policy with_switch(const Policy& policy, std::string_view name, std::string_view value);

// A limit that can be changed while the engine runs.
struct LimitRow {
  std::string_view name, description;
  uint32_t value = 0, min = 1, max = 1;
};
enum class LimitKind : uint8_t { kSequences, kStepTokens, kPoolBlocks };
inline constexpr size_t kLimitKinds = 3;
// `created`: the limits the engine was created with, which are the maximum.
std::vector<LimitRow> limit_rows(const SchedulerLimits& limits, const SchedulerLimits& created);
SchedulerLimits with_limit(SchedulerLimits limits, LimitKind kind, uint32_t value);

// Slow motion in steps per second, on a logarithmic slider from 0 (slowest) to 1 (fastest).
inline constexpr double kSlowestPace = 0.5, kFastestPace = 60;
double pace_from_slider(double slider);
double slider_from_pace(double pace);

}  // namespace hearth
