#include "engine/model/step_meetings.h"

#include <algorithm>

#include "params/attention.h"
#include "runtime/device.h"
#include "runtime/memory.h"

namespace hearth {

MeetingBytes meeting_bytes(const ModelConfig& config, uint32_t rows, uint32_t logit_rows) {
  uint64_t leaving = 0, entering = 0;  // floats
  if (config.shard.is_divided()) {
    leaving = entering = uint64_t{rows} * config.width;
    leaving = std::max(leaving, uint64_t{logit_rows} * config.held_tokens);
    if (config.samples()) entering = std::max(entering, uint64_t{logit_rows} * config.vocabulary);
  }
  if (config.deal.is_divided()) {
    const uint64_t heads = uint64_t{rows} * config.heads;
    leaving = std::max(leaving, heads * (config.head_size + params::kAttentionStats));
    entering = std::max(entering, heads * config.head_size);
  }
  return {.leaving = leaving * sizeof(float), .entering = entering * sizeof(float)};
}

Result<StepMeetings> StepMeetings::create(Device& device, const ModelConfig& config, uint32_t rows,
                                          uint32_t logit_rows) {
  StepMeetings meetings;
  if (!config.meets_ranks()) return meetings;
  meetings.samples_ = config.samples();
  const MeetingBytes bytes = meeting_bytes(config, rows, logit_rows);
  HEARTH_ASSIGN(meetings.leaving_, device.memory().allocate({.bytes = bytes.leaving,
                                                             .intent = MemoryIntent::kReadback,
                                                             .name = "own part of a meeting"}));
  HEARTH_ASSIGN(meetings.entering_, device.memory().allocate({.bytes = bytes.entering,
                                                              .intent = MemoryIntent::kUpload,
                                                              .name = "result of a meeting"}));
  return meetings;
}

void StepMeetings::record_leaving(CommandRecorder& recorder, const RankMeeting& meeting,
                                  const Buffer& x) const {
  const uint64_t bytes = meeting.x_bytes();
  recorder.copy(x.slice(0, bytes), leaving_.slice(0, bytes));
}

void StepMeetings::record_entering(CommandRecorder& recorder, const RankMeeting& meeting,
                                   const Buffer& y) const {
  const uint64_t bytes = meeting.y_bytes();
  recorder.copy(entering_.slice(0, bytes), y.slice(0, bytes));
}

Status StepMeetings::meet(RankExchange& exchange, const RankMeeting& meeting) {
  HEARTH_TRY(leaving_.invalidate());
  const std::span<const std::byte> own = leaving_.view<const std::byte>().first(meeting.x_bytes());
  std::span<std::byte> all;
  if (!meeting.on_last || samples_) all = entering_.view<std::byte>().first(meeting.y_bytes());
  HEARTH_TRY(meet(exchange, meeting, own, all));
  return all.empty() ? Status() : entering_.flush();
}

Status StepMeetings::meet(RankExchange& exchange, const RankMeeting& meeting,
                          std::span<const std::byte> own, std::span<std::byte> all) const {
  const std::span<const float> floats{reinterpret_cast<const float*>(own.data()),
                                      own.size() / sizeof(float)};
  const std::span<float> result{reinterpret_cast<float*>(all.data()), all.size() / sizeof(float)};
  switch (meeting.kind) {
    case MeetingKind::kSum:
      return exchange.sum(floats, result);
    case MeetingKind::kSumOwn:
      return exchange.sum_own(floats, meeting.rows, result);
    case MeetingKind::kGather:
      return exchange.gather(own, meeting.rows, meeting.x_width, all);
    case MeetingKind::kJoin:
      return exchange.join(floats, meeting.rows, result);
    case MeetingKind::kMerge:
      break;
  }
  return exchange.merge(floats, meeting.head_size, result, meeting.on_last);
}

}  // namespace hearth
