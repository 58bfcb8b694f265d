// The scheduler's state as plain data, for metrics, the dashboard and tests.
#pragma once

#include <cstdint>

#include "engine/scheduling/batch_plan.h"
#include "engine/scheduling/kv_block_manager.h"
#include "engine/scheduling/sequence.h"

namespace hearth {

// One block of the pool.
struct BlockView {
  BlockState state = BlockState::kFree;
  RequestId owner = 0;  // the request that allocated it, or one that still holds it; 0: none
  std::uint32_t references = 0;  // sequences that share it
  std::uint32_t filled = 0;      // tokens in it, at most kTokensPerBlock
  std::uint64_t hash = 0;        // the lower half; 0: not findable
  std::uint64_t last_use = 0;    // the last step that read it
};

// One request.
struct SequenceView {
  RequestId id = 0;
  SequenceState state = SequenceState::kWaiting;
  std::uint32_t slot = 0;  // while running
  std::int32_t priority = 0;
  // See TokenLedger.
  std::uint32_t prompt_tokens = 0, committed = 0, proposed = 0, computed = 0, max_tokens = 0;
  bool pending = false;      // its newest committed token is not known yet
  bool ready = true;         // the next step need not wait for the host
  std::uint64_t batch = 0;   // with request admission: the batch it is a member of; 0: none
  std::uint32_t blocks = 0;  // of the pool, or of host memory while swapped
  std::uint32_t preemptions = 0;
};

// Current numbers of requests, blocks and tokens.
struct SchedulerCounts {
  std::uint32_t waiting = 0, running = 0, swapped = 0, ending = 0;
  std::uint32_t blocks_used = 0, blocks_cached = 0, blocks_free = 0;  // sum: limits().pool_blocks
  std::uint32_t blocks_reserved = 0;  // used blocks that hold no token yet
  std::uint32_t blocks_shared = 0;    // used blocks with more than one reference
  std::uint32_t swap_used = 0, swap_total = 0;
  std::uint64_t kv_tokens = 0;  // in the blocks of running sequences; shared ones count each time
  std::uint64_t wasted_tokens = 0;  // empty token places in the blocks of running sequences

  bool operator==(const SchedulerCounts&) const = default;
};

// Totals since the scheduler was created.
struct SchedulerTotals {
  std::uint64_t steps = 0;
  std::uint64_t prompt_tokens = 0;  // computed; recomputed tokens count again
  std::uint64_t decode_tokens = 0;
  std::uint64_t padding_tokens = 0;
  std::uint64_t proposed_tokens = 0;  // those that steps computed
  std::uint64_t preemptions_recompute = 0, preemptions_swap = 0;
  std::uint64_t prefix_query_tokens = 0, prefix_hit_tokens = 0;
  std::uint64_t forks = 0, copies = 0, evictions = 0;
};

}  // namespace hearth
