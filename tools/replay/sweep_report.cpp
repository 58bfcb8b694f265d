#include "tools/replay/sweep_report.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include <fmt/format.h>

namespace hearth {
namespace {

struct SweepColumn {
  std::string title;
  std::function<std::string(const SweepPoint&)> cell;
};

std::vector<SweepColumn> sweep_columns(const Sweep& sweep, std::span<const SweepPoint> points,
                                       const ServiceGoal& goal) {
  std::vector<SweepColumn> columns;
  columns.push_back({std::string(sweep.parameter()),
                     [](const SweepPoint& point) { return std::to_string(point.value); }});
  const auto add = [&](std::string title, auto number, int digits) {
    columns.push_back({std::move(title), [=](const SweepPoint& point) {
                         return fmt::format("{:.{}f}", number(point.report), digits);
                       }});
  };
  using Report = ReplayReport;
  add(
      "tokens/s", [](const Report& report) { return report.throughput_tokens_per_s; }, 1);
  add(
      "goodput/s", [](const Report& report) { return report.goodput; }, 2);
  const auto add_time = [&](const char* name, Summary Report::*times) {
    add(
        fmt::format("{} p50", name), [=](const Report& r) { return (r.*times).p50 * 1e3; }, 1);
    add(
        fmt::format("{} p99", name), [=](const Report& r) { return (r.*times).p99 * 1e3; }, 1);
  };
  add_time("TTFT", &Report::ttft);
  add_time("TBT", &Report::tbt);
  add(
      "e2e p50", [](const Report& report) { return report.e2e.p50 * 1e3; }, 1);
  add(
      "busy %", [](const Report& report) { return report.busy_share * 100; }, 1);
  add(
      "occupancy %", [](const Report& report) { return report.occupancy * 100; }, 1);
  columns.push_back({"preempted", [](const SweepPoint& point) {
                       return std::to_string(point.report.preemptions());
                     }});
  if (std::ranges::any_of(points, [](const SweepPoint& point) {
        return point.report.cost_per_million_tokens.has_value();
      }))
    add(
        "cost/M", [](const Report& r) { return r.cost_per_million_tokens.value_or(0); }, 3);
  columns.push_back({"SLO", [=](const SweepPoint& point) {
                       return std::string(meets_goal(point.report, goal) ? "met" : "missed");
                     }});
  return columns;
}

// "p99 of TTFT within 1 s and of TBT within 0.1 s"
std::string goal_text(const ServiceGoal& goal) {
  return fmt::format("p99 of TTFT within {:g} s and of TBT within {:g} s", goal.time_to_first_token,
                     goal.time_between_tokens);
}

// "1.52 s at max-seqs=8": the point with the lowest p99.
std::string nearest(const Sweep& sweep, std::span<const SweepPoint> points,
                    Summary ReplayReport::*times) {
  const auto p99 = [=](const SweepPoint& point) { return (point.report.*times).p99; };
  const SweepPoint& point = *std::ranges::min_element(points, {}, p99);
  return fmt::format("{:.3g} s at {}={}", p99(point), sweep.parameter(), point.value);
}

}  // namespace

bool meets_goal(const ReplayReport& report, const ServiceGoal& goal) {
  return report.failed == 0 && report.generated_tokens > 0 &&
         report.ttft.p99 <= goal.time_to_first_token && report.tbt.p99 <= goal.time_between_tokens;
}

std::optional<size_t> best_point(std::span<const SweepPoint> points, const ServiceGoal& goal) {
  constexpr double kEquallyFast = 0.99;
  double highest = 0;
  for (const SweepPoint& point : points)
    if (meets_goal(point.report, goal))
      highest = std::max(highest, point.report.throughput_tokens_per_s);
  std::optional<size_t> best;
  for (size_t i = 0; i < points.size(); ++i) {
    const ReplayReport& report = points[i].report;
    if (!meets_goal(report, goal) || report.throughput_tokens_per_s < highest * kEquallyFast)
      continue;
    if (!best || report.e2e.mean < points[*best].report.e2e.mean) best = i;
  }
  return best;
}

std::string format_sweep(const Sweep& sweep, std::span<const SweepPoint> points,
                         const ServiceGoal& goal) {
  std::string table;
  std::vector<std::string> lines(points.size() + 1);
  for (const SweepColumn& column : sweep_columns(sweep, points, goal)) {
    std::vector<std::string> cells = {column.title};
    for (const SweepPoint& point : points) cells.push_back(column.cell(point));
    const size_t width = std::ranges::max_element(cells, {}, &std::string::size)->size();
    for (size_t i = 0; i < lines.size(); ++i)
      lines[i] += fmt::format("{}{:>{}}", lines[i].empty() ? "" : "  ", cells[i], width);
  }
  for (const std::string& line : lines) table += line + '\n';
  return table;
}

std::string describe_best(const Sweep& sweep, std::span<const SweepPoint> points,
                          const ServiceGoal& goal) {
  if (const std::optional<size_t> best = best_point(points, goal)) {
    const SweepPoint& point = points[*best];
    return fmt::format(
        "Best: {}={}, {:.1f} tokens/s. Of the points with {}, it has the highest throughput; of "
        "those within 1 % of that, the lowest mean end-to-end time.\n",
        sweep.parameter(), point.value, point.report.throughput_tokens_per_s, goal_text(goal));
  }
  return fmt::format(
      "No point has {} and no failed request. The lowest p99 of TTFT is {}, of TBT {}.\n",
      goal_text(goal), nearest(sweep, points, &ReplayReport::ttft),
      nearest(sweep, points, &ReplayReport::tbt));
}

nlohmann::json to_json(const Sweep& sweep, std::span<const SweepPoint> points,
                       const ServiceGoal& goal) {
  nlohmann::json list = nlohmann::json::array();
  for (const SweepPoint& point : points) {
    nlohmann::json entry = to_json(point.report);
    entry["value"] = point.value;
    entry["meets_slo"] = meets_goal(point.report, goal);
    list.push_back(std::move(entry));
  }
  const std::optional<size_t> best = best_point(points, goal);
  return {{"parameter", sweep.parameter()},
          {"points", std::move(list)},
          {"best", best ? nlohmann::json(points[*best].value) : nlohmann::json()}};
}

}  // namespace hearth
