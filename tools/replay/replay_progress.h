// Shows how far the replay of one policy has come. One thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include "engine/step_record.h"
#include "tools/progress.h"
#include "tools/replay/trace.h"

namespace hearth {

class ReplayProgress {
 public:
  ReplayProgress(std::string title, const Trace& trace,
                 ProgressOutput output = ProgressOutput::standard_error());

  // Counts the step's tokens, which the estimate goes by, and the requests that have ended.
  void add(const StepRecord& record);

 private:
  Progress progress_;
  const uint64_t requests_, tokens_;  // of the trace
  uint64_t finished_ = 0, sampled_ = 0;
};

}  // namespace hearth
