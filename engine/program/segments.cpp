#include "engine/program/segments.h"

#include "params/attention.h"

namespace hearth {
namespace {

std::optional<RankMeeting> meeting_at(const PlannedOp& op) {
  if (const auto* sum = op.as<PlannedSum>())
    return RankMeeting{.kind = MeetingKind::kSum,
                       .x = sum->op.y,
                       .y = sum->op.y,
                       .rows = op.rows,
                       .x_width = sum->op.width,
                       .y_width = sum->op.width};
  if (const auto* join = op.as<PlannedJoin>())
    return RankMeeting{.kind = MeetingKind::kJoin,
                       .x = join->op.y,
                       .y = join->op.y,
                       .rows = op.rows,
                       .x_width = join->op.width,
                       .y_width = join->op.joined_width};
  if (const auto* merge = op.as<PlannedMerge>())
    return RankMeeting{.kind = MeetingKind::kMerge,
                       .x = merge->op.x,
                       .y = merge->op.y,
                       .rows = op.rows,
                       .x_width = merge->op.heads * (merge->op.head_size + params::kAttentionStats),
                       .y_width = merge->op.heads * merge->op.head_size,
                       .head_size = merge->op.head_size};
  return std::nullopt;
}

}  // namespace

bool is_meeting(const PlannedOp& op) { return meeting_at(op).has_value(); }

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
