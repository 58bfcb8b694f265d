// Token latencies, for all streams together and for each one. A token counts as delivered when its
// step ends.
//   TTFT  time to first token, from the request's arrival
//   TBT   time between tokens: since the previous token of the same request
//   TPOT  time per output token: a request's mean TBT, known when it ends
// Call only from the window's thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ui/data/quantiles.h"
#include "ui/feeds/engine_view.h"

namespace hearth {

enum class LatencyKind : uint8_t { kTtft, kTbt, kTpot };
inline constexpr size_t kLatencyKinds = 3;
const char* latency_name(LatencyKind kind);         // "TTFT"
const char* latency_description(LatencyKind kind);  // "time to first token: ..."

struct LatencyStats {
  size_t count = 0;
  double p50 = 0, p90 = 0, p99 = 0, mean = 0;
};

struct LatencySample {
  double at = 0;  // when it was measured, on the engine's clock
  double seconds = 0;
  RequestId request = 0;
};

// TBT quantiles of the tokens within a time interval.
struct LatencyBucket {
  double from = 0, to = 0;
  size_t count = 0;
  double p50 = 0, p90 = 0, p99 = 0;
};

// One request's tokens.
struct LatencyStream {
  RequestId request = 0;
  double arrived = 0;
  bool arrival_known = false;  // false if it arrived before the dashboard was watching
  double first_token = 0, last_token = 0;
  uint64_t tokens = 0;
  bool finished = false;
  bool interrupted = false;         // steps were missed, so `tokens` is too low
  bool gap_known = false;           // no step was missed since last_token
  bool queued_for_removal = false;  // listed in ended_
  std::deque<LatencySample> gaps;   // its newest TBT samples, at most kMaxGapsPerStream

  double ttft() const { return arrival_known && tokens > 0 ? first_token - arrived : 0; }
  double tpot() const {
    return tokens > 1 ? (last_token - first_token) / static_cast<double>(tokens - 1) : 0;
  }
};

class LatencyData {
 public:
  static constexpr double kRecentSeconds = 30;
  static constexpr size_t kMaxSamples = 100'000;  // per kind; older ones are dropped
  static constexpr size_t kMaxGapsPerStream = 4096;
  static constexpr size_t kMaxEndedStreams = 512;  // kept for display

  void update(const EngineView& view);

  enum class Window : uint8_t { kRecent, kAll };
  // Exact quantiles over the window: the last kRecentSeconds, or everything kept.
  LatencyStats stats(LatencyKind kind, Window window) const;
  std::vector<Quantiles::Bar> histogram(LatencyKind kind, Window window, int per_decade) const;
  // TBT of one stream, over the samples kept.
  LatencyStats stats(const LatencyStream& stream, Window window) const;

  // The window's start and end on the engine's clock, which stands still while the engine is
  // paused.
  double from(Window window) const;
  double now() const { return now_; }
  // When the numbers last started over, on the engine's clock.
  double restart_seconds() const { return restart_seconds_; }
  // The length of the time axis in seconds: shorter than the window until there is enough data.
  double span(Window window) const;

  // TBT over time, without intervals that have no token. Buckets of the recent window are a quarter
  // of a second wide; those of the whole run double in width whenever there are too many.
  std::vector<LatencyBucket> series(Window window) const;

  // At most `max_samples` of the window's newest values, oldest first.
  void newest_samples(LatencyKind kind, Window window, size_t max_samples,
                      std::vector<LatencySample>& found) const;
  // Streams with a token in the window, sorted by request.
  void streams(Window window, std::vector<const LatencyStream*>& found) const;
  const LatencyStream* find(RequestId request) const;
  uint64_t dropped(LatencyKind kind) const { return kinds_[static_cast<size_t>(kind)].dropped; }

 private:
  struct Kind {
    std::deque<LatencySample> samples;
    size_t recent = 0;  // how many of the newest samples lie in the recent window
    uint64_t dropped = 0;
    Quantiles all_values, recent_values;
  };
  // Buckets over the TBT samples, which are in order of time.
  struct Series {
    static constexpr double kFinestSeconds = 0.25;
    static constexpr size_t kMaxBuckets = 1024;
    double width = kFinestSeconds;
    std::deque<LatencyBucket> buckets = {};  // all but the last are complete
    std::vector<double> open = {};           // values in the last bucket
  };

  void clear();
  // Drops all values but keeps the streams, which go on.
  void restart(double seconds);
  void add(const StepRecord& record);
  void add_sample(LatencyKind kind, const LatencySample& sample);
  void finish(RequestId request);
  void handle_missed_steps();
  void queue_for_removal(LatencyStream& stream);
  void drop_old();
  LatencyStream& stream(RequestId request);
  static void append(Series& series, const LatencySample& sample);
  static void finish_last_bucket(Series& series);
  void double_bucket_width();

  uint64_t generation_ = 0;
  double now_ = 0;
  uint64_t restart_ = 0;
  double restart_seconds_ = 0;  // values from before do not count
  double first_step_seconds_ = -1;  // start of the first step; negative: none yet
  std::array<Kind, kLatencyKinds> kinds_;
  // What stats() has computed since the last update(), for each kind and window.
  mutable std::array<std::optional<LatencyStats>, 2 * kLatencyKinds> stats_;
  Series recent_series_, all_series_;
  std::unordered_map<RequestId, LatencyStream> streams_;
  std::deque<RequestId> ended_;  // oldest first
};

}  // namespace hearth
