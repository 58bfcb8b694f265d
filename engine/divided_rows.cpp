#include "engine/divided_rows.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "engine/model/step_planner.h"
#include "engine/program/segments.h"
#include "runtime/memory.h"

namespace hearth {
namespace {

// Whether all normed rows that cross the link in a prompt step of this size are f16.
bool gathers_halves(const StepPlanner& planner, uint32_t rows) {
  const StepPlan plan = planner.plan_distinct(choose_bucket(rows, 1, rows, 1));
  bool found = false;
  for (const PlanSegment& segment : cut_at_meetings(plan)) {
    if (!segment.meeting || segment.meeting->y != Value::kNormed) continue;
    if (segment.meeting->form != RowForm::kHalves) return false;
    found = true;
  }
  return found;
}

}  // namespace

DividedRows choose_divided_rows(const DeviceCaps& caps, const ModelPlan& plan,
                                const StepLimits& limits, const MeetingCost& cost) {
  StepLimits all_divided = limits;
  all_divided.divided_rows = 1;
  const ActivationSizes sizes = activation_sizes(caps, plan.config, plan.matmuls, limits);
  const StepPlanner planner({.caps = caps,
                             .model = plan,
                             .limits = all_divided,
                             .matmul_scratch_bytes = sizes.matmul_scratch});
  const uint32_t ranks = plan.config.shard.count;
  DividedRows choice;
  for (uint32_t rows = std::bit_floor(std::max(1u, limits.rows)); rows >= std::max(2u, ranks);
       rows /= 2) {
    const DividedSum sum{.rows = rows,
                         .width = plan.config.width,
                         .ranks = ranks,
                         .halves = gathers_halves(planner, rows)};
    const double saved = seconds_saved(cost, sum);
    if (choice.largest == 0) {
      choice.largest = rows;
      choice.saved_seconds = saved;
    }
    if (saved <= 0) break;
    choice.from = rows;
  }
  return choice;
}

std::string divided_rows_text(const DividedRows& choice, const MeetingCost& cost) {
  if (choice.largest == 0)
    return divided_rows_text(0, "steps have fewer tokens than there are ranks");
  const LinkTiming& slowest = cost.link.back();
  const std::string measured = fmt::format(
      "as measured: {} takes {:.0f} us between ranks {} and {}", format_bytes(slowest.bytes),
      slowest.seconds * 1e6, slowest.ranks[0], slowest.ranks[1]);
  if (choice.from == 0)
    return fmt::format(
        "norms are whole on every rank, because dividing them would add {:.0f} us to a sum of {} "
        "tokens ({})",
        -choice.saved_seconds * 1e6, choice.largest, measured);
  return fmt::format(
      "norms are divided over the ranks in steps of {} tokens or more, which saves {:.0f} us per "
      "sum of {} tokens ({})",
      choice.from, choice.saved_seconds * 1e6, choice.largest, measured);
}

std::string divided_rows_text(uint32_t from, const std::string& why) {
  if (from == 0) return fmt::format("norms are whole on every rank ({})", why);
  return fmt::format("norms are divided over the ranks in steps of {} tokens or more ({})", from,
                     why);
}

}  // namespace hearth
