// The engine's utilisation over time: sequences, tokens, padding, GPU busy time. Steps are summed
// up in time buckets of equal width, and a step's work is spread over the time it ran. Call only
// from the window's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "ui/feeds/engine_view.h"

namespace hearth {

// Sums over a time interval.
struct OccupancyBucket {
  double from = 0, to = 0;
  double steps = 0, members = 0;  // members: sequences, summed over steps
  double prompt_tokens = 0, decode_tokens = 0, padding_tokens = 0, generated_tokens = 0;
  double run_seconds = 0;
  // As of the bucket's newest step, or else carried over from the previous bucket.
  uint32_t running = 0, waiting = 0, swapped = 0;

  double batch() const { return steps > 0 ? members / steps : 0; }
  double padding_share() const {
    const double all = prompt_tokens + decode_tokens + padding_tokens;
    return all > 0 ? padding_tokens / all : 0;
  }
  double busy_share() const;
  double generated_per_s() const { return to > from ? generated_tokens / (to - from) : 0; }
  double prompt_per_s() const { return to > from ? prompt_tokens / (to - from) : 0; }
};

struct MemoryBar {
  std::vector<MemoryPart> parts;
  uint64_t used_bytes = 0, budget_bytes = 0;  // budget 0: unknown
  // The full length of the bar that shows it.
  uint64_t scale_bytes() const { return budget_bytes > used_bytes ? budget_bytes : used_bytes; }
};

class OccupancyData {
 public:
  static constexpr double kFineSeconds = 0.5;  // bucket width within the last kFineSpan seconds
  static constexpr double kFineSpan = 60;
  static constexpr size_t kMaxCoarseBuckets = 1024;  // for the whole run; wider when exceeded

  void update(const EngineView& view);

  enum class Window : uint8_t { kRecent, kAll };
  // The sum over the whole window, up to now.
  OccupancyBucket sum(Window window) const;
  const std::deque<OccupancyBucket>& series(Window window) const {
    return window == Window::kRecent ? fine_.buckets : coarse_.buckets;
  }
  double from(Window window) const;
  // The length of the time axis in seconds: shorter than the window until there is enough data.
  double span(Window window) const;
  // The engine's clock, which stands still while the engine is paused.
  double now() const { return now_; }
  // When the numbers last started over, on the engine's clock.
  double restart_seconds() const { return restart_seconds_; }

  // Over the last second.
  double generated_per_s() const { return last_second_.generated; }
  double prompt_per_s() const { return last_second_.prompt; }
  double steps_per_s() const { return static_cast<double>(last_second_steps_.size()); }
  // The batch size of the newest step.
  uint32_t batch() const { return batch_; }
  const SchedulerCounts& counts() const { return counts_; }
  uint32_t max_sequences() const { return max_sequences_; }
  const MemoryBar& memory() const { return memory_; }

 private:
  struct Series {
    double width = kFineSeconds;
    std::deque<OccupancyBucket> buckets = {};
  };
  struct StepWork {
    double at = 0, generated = 0, prompt = 0;
  };

  void clear();
  void restart(double seconds);
  void add(const StepRecord& record);
  static void extend_to(Series& series, double until);
  static void add_work(Series& series, const OccupancyBucket& work);
  static void double_bucket_width(Series& series);

  uint64_t generation_ = 0;
  double now_ = 0;
  uint64_t restart_ = 0;
  double restart_seconds_ = 0;  // steps from before do not count
  Series fine_, coarse_;
  std::deque<StepWork> last_second_steps_;
  StepWork last_second_;
  uint32_t batch_ = 0, max_sequences_ = 0;
  SchedulerCounts counts_;
  MemoryBar memory_;
};

}  // namespace hearth
