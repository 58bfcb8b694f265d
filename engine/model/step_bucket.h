// The sizes a step is recorded for. A step with fewer of everything fits in, the rest is padding.
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <limits>

namespace hearth {

struct StepBucket {
  uint32_t rows = 0;  // tokens of all sequences
  uint32_t sequences = 0;
  uint32_t sequence_rows = 0;  // the most tokens one sequence has; 1: a decode step
  uint32_t logit_rows = 0;     // tokens whose logits are wanted: `rows` at most
  uint32_t context = std::numeric_limits<uint32_t>::max();  // the most tokens a sequence has had
  bool greedy = false;  // no row wants more than its largest logit

  auto operator<=>(const StepBucket&) const = default;
};

// The next size that steps are recorded for: eight to an octave, so that padding costs an eighth at
// most, six percent on average, and a model of any batch size needs some dozens of recordings.
inline uint32_t bucket_size(uint32_t count) {
  if (count <= 8) return count;
  const uint32_t unit = std::bit_floor(count - 1) / 8 == 0 ? 1 : std::bit_floor(count - 1) / 8;
  return static_cast<uint32_t>(std::min<uint64_t>((uint64_t{count} + unit - 1) / unit * unit,
                                                  std::numeric_limits<uint32_t>::max()));
}

// The next context that steps are recorded for. Room for the splits of attention goes by it, and
// room that is not used costs groups that do nothing; under the first no device splits at all.
inline uint32_t bucket_context(uint32_t tokens) {
  uint64_t end = 192;
  while (tokens >= end) end *= 4;
  return static_cast<uint32_t>(std::min<uint64_t>(end - 1, std::numeric_limits<uint32_t>::max()));
}

// The bucket of a step of these sizes. In a decode step sequence i has the one row i and wants its
// logits, so that nothing is gathered.
inline StepBucket choose_bucket(uint32_t rows, uint32_t sequences, uint32_t longest,
                                uint32_t logit_rows) {
  if (longest <= 1 && rows == sequences && logit_rows == rows) {
    const uint32_t size = bucket_size(rows);
    return {.rows = size, .sequences = size, .sequence_rows = 1, .logit_rows = size};
  }
  // Lists of sequences are short: powers of two keep the number of recordings small.
  const uint32_t size = bucket_size(rows);
  return {.rows = size,
          .sequences = std::bit_ceil(sequences),
          .sequence_rows = size,
          .logit_rows = logit_rows == 0 ? 0 : std::min(std::bit_ceil(logit_rows), size)};
}

}  // namespace hearth
