// What the control panel shows of an engine's policy and limits, and what a click changes: plain
// data and pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/scheduling/policy.h"
#include "engine/scheduling/scheduler.h"

namespace hearth {

// What a named policy is, in one line; also of "custom".
std::string_view policy_description(std::string_view name);

// A switch with the value it has.
struct SwitchRow {
  std::string_view name, description;
  std::span<const std::string_view> values;  // empty: a number
  size_t selected = 0;                       // of values
  uint32_t number = 0;
};
std::vector<SwitchRow> switch_rows(const Policy& policy);
// The policy with one switch turned; the policy as it is if there is no such value.
Policy with_switch(const Policy& policy, std::string_view name, std::string_view value);

// A limit that can be changed while the engine runs.
struct LimitRow {
  std::string_view name, description;
  uint32_t value = 0, min = 1, max = 1;
};
enum class LimitKind : uint8_t { kSequences, kStepTokens, kPoolBlocks };
inline constexpr size_t kLimitKinds = 3;
// `made`: what the engine was made for.
std::vector<LimitRow> limit_rows(const SchedulerLimits& limits, const SchedulerLimits& created);
SchedulerLimits with_limit(SchedulerLimits limits, LimitKind kind, uint32_t value);

// Slow motion: steps a second, from the slider's 0 (slowest) to 1 (fastest), evenly in proportion.
inline constexpr double kSlowestPace = 0.5, kFastestPace = 60;
double pace_from_slider(double slider);
double slider_from_pace(double pace);

}  // namespace hearth
