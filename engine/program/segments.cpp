#include "engine/program/segments.h"

namespace hearth {
namespace {

std::optional<RankMeeting> meeting_at(const PlannedOp& op) {
  if (const auto* sum = op.as<PlannedSum>())
    return RankMeeting{.y = sum->op.y, .rows = op.rows, .width = sum->op.width};
  if (const auto* join = op.as<PlannedJoin>())
    return RankMeeting{.y = join->op.y,
                       .rows = op.rows,
                       .width = join->op.width,
                       .joined_width = join->op.joined_width};
  return std::nullopt;
}

}  // namespace

std::vector<PlanSegment> cut_at_meetings(const StepPlan& plan) {
  const std::span<const PlannedOp> ops = plan.ops;
  std::vector<PlanSegment> segments;
  size_t begin = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    const std::optional<RankMeeting> meeting = meeting_at(ops[i]);
    if (!meeting) continue;
    segments.push_back({.ops = ops.subspan(begin, i - begin), .meeting = meeting});
    begin = i + 1;
  }
  segments.push_back({.ops = ops.subspan(begin)});
  return segments;
}

}  // namespace hearth
