// A record of one step: plain data for metrics, traces, /events and the dashboard. Published into a
// ring with a single writer; readers copy records and delay the engine at most for the time of one
// copy.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/generation.h"
#include "engine/scheduling/batch_plan.h"
#include "engine/scheduling/scheduler_views.h"

namespace hearth {

enum class StepPhase : uint8_t { kPrompt, kDecode };

struct StepMember {
  RequestId request = 0;
  uint32_t slot = 0;
  StepPhase phase = StepPhase::kDecode;
  uint32_t first_position = 0, tokens = 0;
  bool samples = false;
  // The last `proposed` of its tokens were guesses of speculation, or candidates, of which this many
  // were accepted.
  uint32_t proposed = 0, accepted = 0;
};

struct StepRecord {
  struct Arrival {
    RequestId request = 0;
    double seconds = 0;  // when submit() accepted it
    uint32_t prompt_tokens = 0;
    uint32_t max_tokens = 0;  // most tokens, prompt and generated together
  };

  // begin, submit and end are points in time, in seconds since the engine was created; the others
  // are durations.
  uint64_t step = 0;
  double begin_seconds = 0;   // when planning started
  double plan_seconds = 0;    // planning and writing the inputs
  double submit_seconds = 0;  // when it was submitted to the GPU
  double run_seconds = 0;     // from then, or from the end of the previous step, until it was done
  double wait_seconds = 0;    // how long the engine thread waited for it
  double end_seconds = 0;     // when its tokens were available

  std::vector<StepMember> members;
  uint32_t tokens = 0, padding_tokens = 0;
  uint32_t sampled_tokens = 0;

  // Everything since the previous record, even requests that were never in a step. A request's
  // arrival is in the record of its first step or in an earlier one.
  std::vector<Arrival> arrived;
  std::vector<RequestId> admitted, preempted_recompute, preempted_swap, finished;
  std::vector<RequestId> cancelled;  // those of `finished` that were cancelled
  std::vector<BatchPlan::PrefixHit> prefix_hits;
  uint32_t blocks_swapped_out = 0, blocks_swapped_in = 0, blocks_copied = 0;
  SchedulerCounts counts;  // after planning

  // Reserves room in the lists for `sequences` sequences.
  void reserve(size_t sequences);
  // Empties the lists but keeps their capacity.
  void clear();
};

class StepRing {
 public:
  // Keeps the last `records` steps of up to `members` sequences each; allocates all of it now.
  StepRing(size_t records, size_t members);

  // For the engine thread: fills the next record in place. `fill` gets a record whose lists are
  // empty and have capacity.
  template <class Fill>
  void publish(Fill fill) {
    Slot& slot = *slots_[written_ % slots_.size()];
    {
      const std::lock_guard lock(slot.mutex);
      slot.record.clear();
      fill(slot.record);
      slot.index = written_;
    }
    const std::lock_guard lock(mutex_);
    ++written_;
  }

  // Number of records published so far, which is the index of the next one. Any thread.
  uint64_t written() const {
    const std::lock_guard lock(mutex_);
    return written_;
  }
  // Copies record `index`, counted from 0. False if it has not been published yet or was
  // overwritten.
  bool read(uint64_t index, StepRecord& record) const;

 private:
  struct Slot {
    mutable std::mutex mutex;
    uint64_t index = UINT64_MAX;
    StepRecord record;
  };

  std::vector<std::unique_ptr<Slot>> slots_;
  mutable std::mutex mutex_;
  uint64_t written_ = 0;  // only the writer changes it
};

}  // namespace hearth
