// The segments of a plan: the ops between two places where ranks that divide every layer meet. The
// plan of a device on its own is one segment. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/program/plan.h"

namespace hearth {

// What ranks exchange at the end of a segment.
struct RankMeeting {
  Value y = Value::kHidden;
  uint32_t rows = 0, width = 0;  // of this rank's y
  uint32_t joined_width = 0;     // of all ranks' columns side by side; 0: their y are added up
};

struct PlanSegment {
  std::span<const PlannedOp> ops;
  std::optional<RankMeeting> meeting = {};  // after the ops; the last segment has none
};

// At least one, the last of which may have no ops. Valid as long as the plan.
std::vector<PlanSegment> cut_at_meetings(const StepPlan& plan);

}  // namespace hearth
