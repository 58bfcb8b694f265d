// Counters, gauges and histograms of the engine. Written by the engine thread, except the counts of
// submissions, and read from any thread. Every number is a separate atomic: a reader may see a step
// partly counted, but never a torn number.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hearth {

class Counter {
 public:
  void add(uint64_t count = 1) { value_.fetch_add(count, std::memory_order_relaxed); }
  void set(uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// Counts values in buckets, like a Prometheus histogram.
class Histogram {
 public:
  // `bounds` are the buckets' upper bounds in ascending order; a last bucket has no bound.
  explicit Histogram(std::span<const double> bounds);

  void add(double value);

  struct Snapshot {
    std::vector<double> bounds;
    std::vector<uint64_t> counts;  // per bucket, not cumulative; one more than bounds
    uint64_t count = 0;
    double sum = 0;

    // An estimate from the buckets; q is from 0 to 1. 0 if there are no values.
    double quantile(double q) const;
  };
  Snapshot snapshot() const;

 private:
  std::vector<double> bounds_;
  std::vector<std::atomic<uint64_t>> counts_;
  std::atomic<double> sum_{0};
};

struct Metrics {
  Metrics();

  Counter requests_submitted, requests_refused;
  Counter finished_stop, finished_length, finished_cancelled, finished_time_limit, finished_error;
  Counter steps, prompt_tokens, generated_tokens, padding_tokens;
  Counter proposed_tokens, accepted_tokens;  // by speculation
  // Of these, guesses from the output of other requests.
  Counter shared_proposed_tokens, shared_accepted_tokens;
  Counter judged_steps;                      // one for each request of a step that had proposals
  // By their place among the proposals of their step; later places count with the last. A proposal
  // after a rejected one was not accepted.
  static constexpr size_t kProposalPlaces = 16;
  std::array<Counter, kProposalPlaces> proposed_at, accepted_at;
  Counter forced_tokens;                     // of generated_tokens, those that no step sampled
  Counter prefix_query_tokens, prefix_hit_tokens;
  Counter preemptions_recompute, preemptions_swap;
  Counter blocks_copied, blocks_swapped_out, blocks_swapped_in;

  // Gauges: the state after the last step was planned or, while no step runs, the current state.
  Counter running, waiting, swapped;
  Counter kv_blocks_used, kv_blocks_cached, kv_blocks_free;

  Histogram time_to_first_token_seconds;
  Histogram time_between_tokens_seconds;    // one value per token after a request's first
  Histogram time_per_output_token_seconds;  // one value per request: the mean after the first token
  Histogram end_to_end_seconds;
  Histogram queue_seconds;
  Histogram tokens_per_step;
  Histogram step_seconds;
};

}  // namespace hearth
