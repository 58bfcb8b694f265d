#include "engine/divided_rows.h"

#include <algorithm>
#include <bit>

#include "engine/model/step_planner.h"
#include "engine/program/segments.h"

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

uint32_t choose_divided_rows(const DeviceCaps& caps, const ModelPlan& plan,
                             const StepLimits& limits, const MeetingCost& cost) {
  StepLimits all_divided = limits;
  all_divided.divided_rows = 1;
  const ActivationSizes sizes = activation_sizes(caps, plan.config, plan.matmuls, limits);
  const StepPlanner planner({.caps = caps,
                             .model = plan,
                             .limits = all_divided,
                             .matmul_scratch_bytes = sizes.matmul_scratch});
  const uint32_t ranks = plan.config.shard.count;
  uint32_t least = 0;
  for (uint32_t rows = std::bit_floor(std::max(1u, limits.rows)); rows >= std::max(2u, ranks);
       rows /= 2) {
    const DividedSum sum{.rows = rows,
                         .width = plan.config.width,
                         .ranks = ranks,
                         .halves = gathers_halves(planner, rows)};
    if (seconds_saved(cost, sum) <= 0) break;
    least = rows;
  }
  return least;
}

}  // namespace hearth
