// The results of a sweep: one replay per value, and which of them is best under the service goal.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>

#include "tools/replay/replay_report.h"
#include "tools/replay/sweep.h"

namespace hearth {

struct SweepPoint {
  uint32_t value = 0;  // of the swept limit
  ReplayReport report;
};

// A point meets the goal if 99 % of its requests and tokens do and no request failed: the p99 of
// TTFT and the p99 of TBT are within the goal.
bool meets_goal(const ReplayReport& report, const ServiceGoal& goal);

// The index of the best of the points that meet the goal; nothing if none does. Points within 1 %
// of the highest throughput count as equally fast, because measurements differ by that much and
// because a trace that does not load the device has the same throughput at many points. Of those,
// the one with the lowest mean end-to-end time is best; of equals, the first.
std::optional<size_t> best_point(std::span<const SweepPoint> points, const ServiceGoal& goal);

// One row per point.
std::string format_sweep(const Sweep& sweep, std::span<const SweepPoint> points,
                         const ServiceGoal& goal);
// One line: the best point, or how far the points are from meeting the goal.
std::string describe_best(const Sweep& sweep, std::span<const SweepPoint> points,
                          const ServiceGoal& goal);

// {parameter, points: [...], best}; each point is a report with its value, best is a value or null.
nlohmann::json to_json(const Sweep& sweep, std::span<const SweepPoint> points,
                       const ServiceGoal& goal);

}  // namespace hearth
