// Where everything that changes from step to step is in the buffer of a step's inputs. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/model/step_bucket.h"
#include "engine/ops/attention_work.h"

namespace hearth {

// Byte offsets in the buffer, for a bucket.
struct StepLayout {
  uint64_t ids = 0;            // [rows] u32
  uint64_t row_sequences = 0;  // [rows] u32
  uint64_t ancestors = 0;      // [rows] u32, right after them, if the bucket has trees
  uint64_t sequences = 0;      // [sequences] StepSequence
  uint64_t logit_rows = 0;     // [logit rows] u32
  uint64_t sampling = 0;       // [logit rows] SamplingRow
  uint64_t commits = 0;        // [sequences] HistoryCommit, if the bucket has any
  uint64_t pools = 0;          // [step_pools()] PoolRange, if the bucket has any
  uint64_t kept = 0;           // [rows] HiddenPlace, if the bucket has hidden states to keep,
  uint64_t compared = 0;       // [logit rows] HiddenComparison, or to compare
  struct Lists {
    uint64_t few = 0, many = 0;
    uint64_t ancestors = 0;  // [rows] u32, if KV blocks are dealt and the bucket has trees
  };
  std::array<Lists, 2> attention = {};  // per window: see attention_windows()
  uint64_t block_tables = 0;            // u32; at the end, because their number varies
};

// The most ranges that a step of this bucket pools: all rows, if none is in two ranges.
uint32_t step_pools(const StepBucket& bucket);

// `dealt`: ranks share a pool of KV blocks.
StepLayout step_layout(const StepBucket& bucket, const AttentionCapacity& capacity, size_t windows,
                       bool dealt);

}  // namespace hearth
