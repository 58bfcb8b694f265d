#include "engine/model/step_meetings.h"

#include <algorithm>

#include "params/attention.h"
#include "runtime/device.h"
#include "runtime/memory.h"

namespace hearth {

Result<StepMeetings> StepMeetings::create(Device& device, const ModelConfig& config, uint32_t rows,
                                          uint32_t logit_rows) {
  StepMeetings meetings;
  if (!config.meets_ranks()) return meetings;
  meetings.samples_ = config.samples();
  uint64_t leaving = 0, entering = 0;  // floats
  if (config.shard.is_divided()) {
    leaving = entering = uint64_t{rows} * config.width;
    leaving = std::max(leaving, uint64_t{logit_rows} * config.held_tokens);
    if (meetings.samples_) entering = std::max(entering, uint64_t{logit_rows} * config.vocabulary);
  }
  if (config.deal.is_divided()) {
    const uint64_t heads = uint64_t{rows} * config.heads;
    leaving = std::max(leaving, heads * (config.head_size + params::kAttentionStats));
    entering = std::max(entering, heads * config.head_size);
  }
  HEARTH_ASSIGN(meetings.leaving_, device.memory().allocate({.bytes = leaving * sizeof(float),
                                                             .intent = MemoryIntent::kReadback,
                                                             .name = "own part of a meeting"}));
  HEARTH_ASSIGN(meetings.entering_, device.memory().allocate({.bytes = entering * sizeof(float),
                                                              .intent = MemoryIntent::kUpload,
                                                              .name = "result of a meeting"}));
  return meetings;
}

void StepMeetings::record_leaving(CommandRecorder& recorder, const RankMeeting& meeting,
                                  const Buffer& x) const {
  const uint64_t bytes = uint64_t{meeting.rows} * meeting.x_width * sizeof(float);
  recorder.copy(x.slice(0, bytes), leaving_.slice(0, bytes));
}

void StepMeetings::record_entering(CommandRecorder& recorder, const RankMeeting& meeting,
                                   const Buffer& y) const {
  const uint64_t bytes = uint64_t{meeting.rows} * meeting.y_width * sizeof(float);
  recorder.copy(entering_.slice(0, bytes), y.slice(0, bytes));
}

Status StepMeetings::meet(RankExchange& exchange, const RankMeeting& meeting) {
  HEARTH_TRY(leaving_.invalidate());
  const std::span<const float> own =
      leaving_.view<const float>().first(uint64_t{meeting.rows} * meeting.x_width);
  std::span<float> all;
  if (meeting.kind != MeetingKind::kJoin || samples_)
    all = entering_.view<float>().first(uint64_t{meeting.rows} * meeting.y_width);
  switch (meeting.kind) {
    case MeetingKind::kSum:
      HEARTH_TRY(exchange.sum(own, all));
      break;
    case MeetingKind::kJoin:
      HEARTH_TRY(exchange.join(own, meeting.rows, all));
      break;
    case MeetingKind::kMerge:
      HEARTH_TRY(exchange.merge(own, meeting.head_size, all));
      break;
  }
  return all.empty() ? Status() : entering_.flush();
}

}  // namespace hearth
