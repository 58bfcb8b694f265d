// How full the engine is, over time: sequences, tokens, padding, how busy the GPU is. Steps are
// summed up in stretches of time of equal width; a step's work is spread over the time it ran. Of
// the window's thread alone.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "ui/feeds/engine_view.h"

namespace hearth {

// Sums over a stretch of time.
struct OccupancyBucket {
  double from = 0, to = 0;
  double steps = 0, members = 0;  // members: summed over steps
  double prompt_tokens = 0, decode_tokens = 0, padding_tokens = 0, generated_tokens = 0;
  double run_seconds = 0;
  // As of its newest step; those of the stretch before where there is none.
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
  uint64_t used_bytes = 0, budget_bytes = 0;  // budget 0: not known
  // The whole of the bar that shows it.
  uint64_t scale_bytes() const { return budget_bytes > used_bytes ? budget_bytes : used_bytes; }
};

class OccupancyData {
 public:
  static constexpr double kFineSeconds = 0.5;  // buckets of the last kFineSpan
  static constexpr double kFineSpan = 60;
  static constexpr size_t kMaxCoarseBuckets =
      1024;  // buckets of everything; doubled in width when too many

  void update(const EngineView& view);

  enum class Window : uint8_t { kRecent, kAll };
  // The whole window as one bucket, up to now.
  OccupancyBucket sum(Window window) const;
  const std::deque<OccupancyBucket>& series(Window window) const {
    return window == Window::kRecent ? fine_.buckets : coarse_.buckets;
  }
  double from(Window window) const;
  // How much of the window an axis shows: while there is little, no more than that.
  double span(Window window) const;
  // The engine's clock, which stands still here while it is paused.
  double now() const { return now_; }

  // In the last second.
  double generated_per_s() const { return last_second_.generated; }
  double prompt_per_s() const { return last_second_.prompt; }
  double steps_per_s() const { return static_cast<double>(last_second_steps_.size()); }
  // Members of the newest step.
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
  void add(const StepRecord& record);
  static void extend_to(Series& series, double until);
  static void add_work(Series& series, const OccupancyBucket& work);
  static void double_bucket_width(Series& series);

  uint64_t generation_ = 0;
  double now_ = 0;
  Series fine_, coarse_;
  std::deque<StepWork> last_second_steps_;  // steps of the last second
  StepWork last_second_;
  uint32_t batch_ = 0, max_sequences_ = 0;
  SchedulerCounts counts_;
  MemoryBar memory_;
};

}  // namespace hearth
