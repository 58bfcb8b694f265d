// The sizes a step is recorded for. A step fits if none of its sizes is larger; the rest is
// padding.
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <limits>

#include "runtime/rounding.h"

namespace hearth {

// What a step may need beyond plain decoding, as a set. Steps with other needs are recorded apart,
// so that steps without any run exactly the kernels they need.
enum StepExtras : uint8_t {
  kStepRowExtras = 1,  // sampling rows with paths, DRY penalties or token masks
  kStepCommits = 2,
  kStepMixes = 4,    // sampling rows whose logits are mixed
  kStepPools = 8,    // hidden states of all rows, to be pooled
  kStepStages = 16,  // sampling rows with stages
  kStepHidden = 32,  // hidden states that are kept or compared
};

struct StepBucket {
  uint32_t rows = 0;  // tokens of all sequences
  uint32_t sequences = 0;
  uint32_t sequence_rows = 0;  // most tokens of one sequence in the step; 1: a decode step
  uint32_t logit_rows = 0;     // tokens whose logits are wanted; at most `rows`
  uint32_t context =
      std::numeric_limits<uint32_t>::max();  // most tokens of a sequence before the step
  bool greedy = false;                       // all rows only need their most likely token
  bool trees = false;                        // sequences may have trees
  uint8_t extras = 0;                        // StepExtras

  auto operator<=>(const StepBucket&) const = default;
};

// Rounds up to a size that steps are recorded for. There are eight sizes per power of two, so that
// padding costs at most an eighth (six percent on average) and a few dozen recordings are enough.
inline uint32_t bucket_size(uint32_t count) {
  if (count <= 8) return count;
  const uint32_t unit = std::bit_floor(count - 1) / 8 == 0 ? 1 : std::bit_floor(count - 1) / 8;
  return static_cast<uint32_t>(std::min<uint64_t>(round_up(uint64_t{count}, unit),
                                                  std::numeric_limits<uint32_t>::max()));
}

// Rounds up to a context that steps are recorded for. It determines the room for splits of
// attention; unused room costs workgroups that do nothing. Below the first size no device splits.
inline uint32_t bucket_context(uint32_t tokens) {
  uint64_t end = 192;
  while (tokens >= end) end *= 4;
  return static_cast<uint32_t>(std::min<uint64_t>(end - 1, std::numeric_limits<uint32_t>::max()));
}

// The bucket for a step of these sizes. In a decode step sequence i has only row i and wants its
// logits, so nothing needs to be gathered.
inline StepBucket choose_bucket(uint32_t rows, uint32_t sequences, uint32_t longest,
                                uint32_t logit_rows) {
  if (longest <= 1 && rows == sequences && logit_rows == rows) {
    const uint32_t size = bucket_size(rows);
    return {.rows = size, .sequences = size, .sequence_rows = 1, .logit_rows = size};
  }
  // Lists of sequences are short, so powers of two are good enough and keep the number of
  // recordings small.
  const uint32_t size = bucket_size(rows);
  return {.rows = size,
          .sequences = std::bit_ceil(sequences),
          .sequence_rows = size,
          .logit_rows = logit_rows == 0 ? 0 : std::min(std::bit_ceil(logit_rows), size)};
}

}  // namespace hearth
