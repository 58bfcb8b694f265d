// Where ranks meet within a step (engine/ranks): host memory through which a value leaves the
// device at the end of a segment of the step's commands, and through which what it has become with
// those of all ranks enters the next one. For one thread.
//
// There is one piece of memory for each direction: it is used again only after the device has
// finished with it, because a rank waits for every segment but the last one of a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/model/model_config.h"
#include "engine/model/rank_exchange.h"
#include "engine/program/segments.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/result.h"

namespace hearth {

class Device;

// Of the memory for each direction.
struct MeetingBytes {
  uint64_t leaving = 0, entering = 0;
};
// For steps of up to these sizes, padding of the bucket included. None without other ranks.
MeetingBytes meeting_bytes(const ModelConfig& config, uint32_t rows, uint32_t logit_rows);

class StepMeetings {
 public:
  // As meeting_bytes().
  static Result<StepMeetings> create(Device& device, const ModelConfig& config, uint32_t rows,
                                     uint32_t logit_rows);

  // The last command of the segment before the meeting, and the first one of the segment after it.
  void record_leaving(CommandRecorder& recorder, const RankMeeting& meeting, const Buffer& x) const;
  void record_entering(CommandRecorder& recorder, const RankMeeting& meeting,
                       const Buffer& y) const;

  // Exchanges the value. REQUIRES: the segment before the meeting has run.
  Status meet(RankExchange& exchange, const RankMeeting& meeting);

 private:
  // The same for what leaves, and what is to enter.
  Status meet(RankExchange& exchange, const RankMeeting& meeting, std::span<const std::byte> own,
              std::span<std::byte> all) const;

  Buffer leaving_, entering_;
  bool samples_ = false;  // this rank gets all ranks' logits
};

}  // namespace hearth
