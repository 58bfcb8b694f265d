// How long tokens take: of all streams and of each. A token is there when its step ends.
//   TTFT  time to first token: from a request's arrival
//   TBT   time between tokens: from the token before it of the same request
//   TPOT  time per output token: the mean TBT of a request, known when it ends
// Of the window's thread alone.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
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
  double at = 0;  // on the engine's clock
  double seconds = 0;
  RequestId request = 0;
};

// A stretch of time: quantiles of the TBT of the tokens in it.
struct LatencyBucket {
  double from = 0, to = 0;
  size_t count = 0;
  double p50 = 0, p90 = 0, p99 = 0;
};

// One request's tokens.
struct LatencyStream {
  RequestId request = 0;
  double arrived = 0;
  bool arrival_known = false;  // else it was there before anyone looked
  double first_token = 0, last_token = 0;
  uint64_t tokens = 0;
  bool finished = false;
  bool interrupted = false;         // steps were missed: it had more tokens than were seen
  bool gap_known = false;           // the newest token seen is its newest: what follows is a gap
  bool queued_for_removal = false;  // listed among those to be forgotten in time
  std::deque<LatencySample> gaps;   // its newest TBT, at most kStreamTokens

  double ttft() const { return arrival_known && tokens > 0 ? first_token - arrived : 0; }
  double tpot() const {
    return tokens > 1 ? (last_token - first_token) / static_cast<double>(tokens - 1) : 0;
  }
};

class LatencyData {
 public:
  static constexpr double kRecentSeconds = 30;
  static constexpr size_t kMaxSamples = 100'000;     // values of a kind; older ones go
  static constexpr size_t kMaxGapsPerStream = 4096;  // of one stream
  static constexpr size_t kMaxEndedStreams = 512;    // that have ended, kept for looking at

  void update(const EngineView& view);

  enum class Window : uint8_t { kRecent, kAll };
  // Exact, of what lies in the window: the last kRecentSeconds, or all that is kept.
  LatencyStats stats(LatencyKind kind, Window window) const;
  std::vector<Quantiles::Bar> histogram(LatencyKind kind, Window window, int per_decade) const;
  // TBT of one stream, as far as it is kept.
  LatencyStats stats(const LatencyStream& stream, Window window) const;

  // The window's ends on the engine's clock. While the engine is paused, time stands still.
  double from(Window window) const;
  double now() const { return now_; }
  // How much of the window an axis shows: while there is little, no more than that.
  double span(Window window) const;

  // TBT over time, without the stretches that have no token. The buckets of the recent window are a
  // quarter of a second wide; those of all double in width whenever they become too many.
  std::vector<LatencyBucket> series(Window window) const;

  // The newest values of the window, at most so many, oldest first.
  void newest_samples(LatencyKind kind, Window window, size_t most,
                      std::vector<LatencySample>& found) const;
  // Streams with a token in the window, by request.
  void streams(Window window, std::vector<const LatencyStream*>& found) const;
  const LatencyStream* find(RequestId request) const;
  uint64_t dropped(LatencyKind kind) const { return kinds_[static_cast<size_t>(kind)].dropped; }

 private:
  struct Kind {
    std::deque<LatencySample> samples;
    size_t recent = 0;  // how many of the newest are in the recent window
    uint64_t dropped = 0;
    Quantiles all_values, recent_values;
  };
  // Buckets over the samples of TBT, which are in order of time.
  struct Series {
    static constexpr double kFinest = 0.25;
    static constexpr size_t kMaxBuckets = 1024;
    double width = kFinest;
    std::deque<LatencyBucket> buckets = {};  // all but the last are final
    std::vector<double> open = {};           // values of the last
  };

  void clear();
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
  double first_step_seconds_ = -1;  // when the first step ended; below 0: there was none
  std::array<Kind, kLatencyKinds> kinds_;
  Series recent_series_, all_series_;
  std::unordered_map<RequestId, LatencyStream> streams_;
  std::deque<RequestId> ended_;  // oldest first
};

}  // namespace hearth
