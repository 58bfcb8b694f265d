// The segments of a plan: the ops between two places where ranks meet. The
// plan of a device on its own is one segment. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/program/plan.h"

namespace hearth {

enum class MeetingKind : uint8_t {
  kSum,     // all ranks' rows are added up
  kSumOwn,  // the same, but each rank gets only its own rows
  kGather,  // each rank's own rows, one after the other
  kJoin,    // their columns are put side by side, for the rank that samples
  kMerge,   // their attention to some of the keys each becomes attention to all
};

// What ranks exchange at the end of a segment.
struct RankMeeting {
  MeetingKind kind = MeetingKind::kSum;
  Value x = Value::kHidden, y = Value::kHidden;  // what leaves this device, and what enters it
  uint32_t rows = 0;                             // of the step
  uint32_t own_rows = 0;  // kSumOwn: that enter this device; kGather: that leave it
  uint32_t x_width = 0, y_width = 0;
  uint32_t head_size = 0;           // kMerge
  RowForm form = RowForm::kFloats;  // kGather
  bool on_last = false;             // only the rank that samples gets y

  // What leaves and what enters.
  uint64_t x_bytes() const {
    return row_form_bytes(form, kind == MeetingKind::kGather ? own_rows : rows, x_width);
  }
  uint64_t y_bytes() const {
    return row_form_bytes(form, kind == MeetingKind::kSumOwn ? own_rows : rows, y_width);
  }
};

// Whether no kernel does the op: ranks meet.
bool is_meeting(const PlannedOp& op);

struct PlanSegment {
  std::span<const PlannedOp> ops;
  std::optional<RankMeeting> meeting = {};  // after the ops; the last segment has none
};

// At least one, the last of which may have no ops. Valid as long as the plan.
std::vector<PlanSegment> cut_at_meetings(const StepPlan& plan);

}  // namespace hearth
