// What one step was: plain data for metrics, traces, /events and the dashboard. Published into a
// ring with a single writer; readers copy what they want and never hold the engine up for longer
// than such a copy.
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
};

struct KernelSpan {
  std::string kernel;
  double start_seconds = 0, seconds = 0;
};

struct StepRecord {
  struct Arrival {
    RequestId request = 0;
    double seconds = 0;  // since the engine began: when submit() accepted it
    uint32_t prompt_tokens = 0;
    uint32_t max_tokens = 0;  // prompt and generated, at most
  };

  uint64_t step = 0;
  double begin_seconds = 0;   // since the engine began: when planning started
  double plan_seconds = 0;    // choosing and writing down what to compute
  double submit_seconds = 0;  // since the engine began: when it was given to the GPU
  double run_seconds = 0;     // from then, or from the end of the step before, until it was done
  double wait_seconds = 0;    // that the engine thread waited for it
  double end_seconds = 0;     // since the engine began: when its tokens were there

  std::vector<StepMember> members;
  uint32_t tokens = 0, padding_tokens = 0;
  uint32_t sampled_tokens = 0;

  // Since the record before this one, however they ended: a request arrives in a record no later
  // than the first it is a member of.
  std::vector<Arrival> arrived;
  std::vector<RequestId> admitted, preempted_recompute, preempted_swap, finished;
  std::vector<RequestId> cancelled;  // those of the finished that somebody ended
  std::vector<BatchPlan::PrefixHit> prefix_hits;
  uint32_t blocks_swapped_out = 0, blocks_swapped_in = 0, blocks_copied = 0;
  SchedulerCounts counts;  // after planning

  std::vector<KernelSpan> kernels;  // when profiling

  // Room for so many sequences.
  void reserve(size_t sequences);
  // Empties the lists, which keep their room.
  void clear();
};

class StepRing {
 public:
  // Room for `records` steps of up to `members` sequences, set aside at once.
  StepRing(size_t records, size_t members);

  // For the engine: fills the next record in place. `fill` gets a record whose lists are empty but
  // have room.
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

  // Records published so far: the next one has this index. Any thread.
  uint64_t written() const {
    const std::lock_guard lock(mutex_);
    return written_;
  }
  // Copies record `index` (counted from 0 in order of publication). False if it is not there yet or
  // was overwritten.
  bool read(uint64_t index, StepRecord& record) const;

 private:
  struct Slot {
    mutable std::mutex mutex;
    uint64_t index = UINT64_MAX;
    StepRecord record;
  };

  std::vector<std::unique_ptr<Slot>> slots_;
  mutable std::mutex mutex_;
  uint64_t written_ = 0;  // changed by the writer alone
};

}  // namespace hearth
