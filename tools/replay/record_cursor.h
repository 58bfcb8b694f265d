// Reads an engine's step records in order, each once. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "engine/step_record.h"

namespace hearth {

// Sees every step, in order.
using StepSink = std::function<void(const StepRecord&)>;

class RecordCursor {
 public:
  // REQUIRES: the ring outlives the cursor.
  RecordCursor(const StepRing& ring, StepSink sink) : ring_(ring), sink_(std::move(sink)) {}

  // Hands every record published since the last call to the sink.
  void read_new() {
    for (const uint64_t written = ring_.written(); next_ < written; ++next_) {
      if (ring_.read(next_, record_))
        sink_(record_);
      else
        ++lost_;
    }
  }
  // Records that were overwritten before they were read.
  uint64_t lost() const { return lost_; }

 private:
  const StepRing& ring_;
  StepSink sink_;
  StepRecord record_;
  uint64_t next_ = 0, lost_ = 0;
};

}  // namespace hearth
