#include "engine/model/step_meetings.h"

#include <algorithm>

#include "runtime/device.h"
#include "runtime/memory.h"

namespace hearth {
namespace {

uint64_t meeting_floats(const RankMeeting& meeting, uint32_t width) {
  return uint64_t{meeting.rows} * width;
}

}  // namespace

Result<StepMeetings> StepMeetings::create(Device& device, const ModelConfig& config, uint32_t rows,
                                          uint32_t logit_rows) {
  StepMeetings meetings;
  if (!config.shard.is_divided()) return meetings;
  meetings.samples_ = config.samples();
  const uint64_t hidden = uint64_t{rows} * config.width;
  const uint64_t held = uint64_t{logit_rows} * config.held_tokens;
  const uint64_t joined = meetings.samples_ ? uint64_t{logit_rows} * config.vocabulary : 0;
  HEARTH_ASSIGN(meetings.leaving_,
                device.memory().allocate({.bytes = std::max(hidden, held) * sizeof(float),
                                          .intent = MemoryIntent::kReadback,
                                          .name = "own part of a sum"}));
  HEARTH_ASSIGN(meetings.entering_,
                device.memory().allocate({.bytes = std::max(hidden, joined) * sizeof(float),
                                          .intent = MemoryIntent::kUpload,
                                          .name = "sum of ranks"}));
  return meetings;
}

void StepMeetings::record_leaving(CommandRecorder& recorder, const RankMeeting& meeting,
                                  const Buffer& value) const {
  const uint64_t bytes = meeting_floats(meeting, meeting.width) * sizeof(float);
  recorder.copy(value.slice(0, bytes), leaving_.slice(0, bytes));
}

void StepMeetings::record_entering(CommandRecorder& recorder, const RankMeeting& meeting,
                                   const Buffer& value) const {
  const uint32_t width = meeting.joined_width != 0 ? meeting.joined_width : meeting.width;
  const uint64_t bytes = meeting_floats(meeting, width) * sizeof(float);
  recorder.copy(entering_.slice(0, bytes), value.slice(0, bytes));
}

Status StepMeetings::meet(RankExchange& exchange, const RankMeeting& meeting) {
  HEARTH_TRY(leaving_.invalidate());
  const std::span<const float> own =
      leaving_.view<const float>().first(meeting_floats(meeting, meeting.width));
  const std::span<float> all = entering_.view<float>();
  if (meeting.joined_width == 0) {
    HEARTH_TRY(exchange.sum(own, all.first(own.size())));
    return entering_.flush();
  }
  if (!samples_) return exchange.join(own, meeting.rows, {});
  HEARTH_TRY(
      exchange.join(own, meeting.rows, all.first(meeting_floats(meeting, meeting.joined_width))));
  return entering_.flush();
}

}  // namespace hearth
