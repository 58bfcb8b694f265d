#include "engine/program/segments.h"

#include "params/attention.h"

namespace hearth {
namespace {

std::optional<RankMeeting> meeting_at(const PlannedOp& op) {
  if (const auto* sum = op.as<PlannedSum>())
    return RankMeeting{.kind = sum->op.own_rows > 0 ? MeetingKind::kSumOwn : MeetingKind::kSum,
                       .x = sum->op.y,
                       .y = sum->op.y,
                       .rows = op.rows,
                       .own_rows = sum->op.own_rows,
                       .x_width = sum->op.width,
                       .y_width = sum->op.width};
  if (const auto* gather = op.as<PlannedGather>())
    return RankMeeting{.kind = MeetingKind::kGather,
                       .x = gather->op.y,
                       .y = gather->op.y,
                       .rows = op.rows,
                       .own_rows = gather->op.own_rows,
                       .x_width = gather->op.width,
                       .y_width = gather->op.width,
                       .form = gather->form};
  if (const auto* join = op.as<PlannedJoin>())
    return RankMeeting{.kind = MeetingKind::kJoin,
                       .x = join->op.y,
                       .y = join->op.y,
                       .rows = op.rows,
                       .x_width = join->op.width,
                       .y_width = join->op.joined_width,
                       .on_last = true};
  if (const auto* merge = op.as<PlannedMerge>())
    return RankMeeting{.kind = MeetingKind::kMerge,
                       .x = merge->op.x,
                       .y = merge->op.y,
                       .rows = op.rows,
                       .x_width = merge->op.heads * (merge->op.head_size + params::kAttentionStats),
                       .y_width = merge->op.heads * merge->op.head_size,
                       .head_size = merge->op.head_size,
                       .on_last = merge->op.on_last};
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
