// Requests to be replayed: when they came and how long they were. Plain data, and pure functions
// that fit a trace to a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hearth {

struct TraceRequest {
  double arrival_seconds = 0;  // since the first request
  uint32_t prompt_tokens = 1, generated_tokens = 1;
  // Ids of the prompt's pieces of `tokens_per_prefix_id` tokens, from its beginning on; the last
  // piece may be cut short. Where ids are equal so are the tokens. What is beyond is its own.
  std::vector<uint64_t> prefix_ids;
  double tokens_per_prefix_id = 512;

  // Where piece `index` begins, at most where the prompt ends.
  uint32_t piece_begin(size_t index) const;
  bool operator==(const TraceRequest&) const = default;
};

struct Trace {
  std::vector<TraceRequest> requests;  // in order of arrival

  uint64_t prompt_tokens() const;
  uint64_t generated_tokens() const;
};

// Multiplies all lengths, rounded, at least 1. Prefixes that were equal stay equal.
void scale_lengths(Trace& trace, double factor);

// Arrivals come `factor` times as fast.
void speed_up(Trace& trace, double factor);
void arrive_at_once(Trace& trace);

// Makes every request fit `context` tokens: the longer of prompt and generation is cut, neither to
// less than half of the context. Returns how many requests were cut. REQUIRES: context >= 2.
size_t clip_lengths(Trace& trace, uint32_t context);

}  // namespace hearth
