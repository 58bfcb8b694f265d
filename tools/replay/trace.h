// The requests of a replay: when they arrive and how long they are. Plain data, and pure functions
// that fit a trace to a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hearth {

// Traces are shorter than this, about three decades: clocks that count nanoseconds in 64 bits can
// hold it.
inline constexpr double kLatestArrivalSeconds = 1e9;

struct TraceRequest {
  double arrival_seconds = 0;  // since the first request; at most kLatestArrivalSeconds
  uint32_t prompt_tokens = 1, generated_tokens = 1;
  // One id per section of `tokens_per_prefix_id` tokens, from the start of the prompt; the last
  // section may be shorter. Sections with equal ids have equal tokens. The rest of the prompt is
  // unique.
  std::vector<uint64_t> prefix_ids;
  double tokens_per_prefix_id = 512;

  // First token of section `index`, or the prompt's length if that is less.
  uint32_t section_begin(size_t index) const;
  bool operator==(const TraceRequest&) const = default;
};

struct Trace {
  std::vector<TraceRequest> requests;  // by arrival

  uint64_t prompt_tokens() const;
  uint64_t generated_tokens() const;
};

// Multiplies all lengths and rounds them, to at least 1. Equal prefixes stay equal.
void scale_lengths(Trace& trace, double factor);

// Makes requests arrive `factor` times as fast. Those that would then arrive after
// kLatestArrivalSeconds arrive at that time.
void speed_up(Trace& trace, double factor);
void arrive_at_once(Trace& trace);
// Gives requests new times of arrival: a Poisson process with `rate` requests per second, the same
// for the same seed. Those beyond kLatestArrivalSeconds arrive at that time.
void arrive_at_rate(Trace& trace, double rate, uint64_t seed);

// Cuts requests that are longer than `context` tokens: the longer of prompt and generation first,
// neither to less than half of the context. Returns the number of requests cut.
// REQUIRES: context >= 2.
size_t clip_lengths(Trace& trace, uint32_t context);

}  // namespace hearth
