// What a feed delivered, so that any of the last steps can be shown again: the step records, and
// what else was known when they became known. Blocks are kept as changes from one moment to the
// next. Call only from the window's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "ui/feeds/engine_view.h"

namespace hearth {

// What a view said besides its steps.
struct RecordedMoment {
  uint64_t end = 0;  // number of the step after the newest one known then, as history counts them
  double now = 0;
  EngineState state = EngineState::kRunning;
  Policy policy;
  SchedulerLimits limits;
  SchedulerCounts counts;
  EngineTotals totals;
  uint64_t restart = 0;  // see EngineView
  double restart_seconds = 0;
  bool has_snapshot = false;
  uint64_t snapshot_step = 0;
  std::vector<SequenceView> sequences;
  // The blocks that differ from those of the moment before, and how many there are.
  std::vector<std::pair<uint32_t, BlockView>> changed;
  uint32_t blocks = 0;
};

class ViewHistory {
 public:
  static constexpr size_t kSteps = 10'000;
  // Older steps are dropped even if there are fewer, because steps of many sequences are large.
  static constexpr size_t kMaxBytes = size_t{192} << 20;

  // Call for every view. Starts over if `engine` changes.
  void add(const EngineView& view, uint64_t engine);
  // The same for what was read from a file. REQUIRES: moments and steps in order.
  void add(std::vector<StepRecord> steps, RecordedMoment moment, uint64_t missed);
  void clear();

  // Steps are numbered from 0 in the order in which they became known; [first(), end()) are kept.
  uint64_t first() const { return first_; }
  uint64_t end() const { return first_ + steps_.size(); }
  bool empty() const { return steps_.empty(); }
  // REQUIRES: first() <= number < end().
  const StepRecord& step(uint64_t number) const { return steps_[number - first_].record; }
  // Steps that were missed before it.
  uint64_t missed_before(uint64_t number) const { return steps_[number - first_].missed; }
  // The number of the first step that ended after this time.
  uint64_t step_at(double seconds) const;

  // Sets everything in `view` as it was when the steps before `end` were known, except new_steps and
  // generation. REQUIRES: first() < end <= end().
  void show(uint64_t end, EngineView& view);

  // For writing it to a file. The first moment has first_blocks() and no changes.
  const std::deque<RecordedMoment>& moments() const { return moments_; }
  const std::vector<BlockView>& first_blocks() const { return first_blocks_; }
  const std::string& source() const { return source_; }
  const std::string& model() const { return model_; }
  const std::string& device() const { return device_; }
  void set_names(std::string source, std::string model, std::string device);

 private:
  struct Step {
    StepRecord record;
    uint64_t missed = 0;
  };
  void drop_old();

  uint64_t engine_ = 0;
  std::string source_, model_, device_;
  std::vector<MemoryPart> memory_;
  uint64_t memory_budget_bytes_ = 0;
  std::deque<Step> steps_;
  uint64_t first_ = 0;
  std::deque<RecordedMoment> moments_;
  std::vector<BlockView> first_blocks_, newest_blocks_;  // of the first and the last moment
  size_t bytes_ = 0;                      // about what all of it takes

  // The blocks of a moment that was shown, so that going forward applies only what changed.
  uint64_t shown_ = UINT64_MAX;   // number of the moment, counted since the start
  uint64_t first_moment_ = 0;     // number of moments_.front()
  std::vector<BlockView> shown_blocks_;
};

// Whether a block looks the same. Which step last read it changes all the time and is left out;
// owned blocks are read in every step of their sequence.
bool same_block(const BlockView& a, const BlockView& b);

}  // namespace hearth
