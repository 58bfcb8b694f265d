// Decides what each step computes: which requests run, how many tokens of each, in which blocks,
// and who has to make room. Knows no GPU, no clock and no text.
//
// plan() is called for step n + 1 while step n still runs. What a plan says happens in the order of
// plans, so it counts as done as soon as it is planned: a request's `computed` grows at once,
// blocks given back may be given out by the next plan, and what one step computes the next may
// share. Every non-empty plan must be run. The id a step samples is told by token() before the plan
// after the next one; a request that ended is reported by finish(), with at most one token computed
// for nothing.
//
// Guarantees: a plan is empty only if nothing can go on before another add(), token(), finish() or
// set_...(); every accepted request is served in the end, whatever comes after it. Planning a step
// of decodes does not allocate.
//
// Not thread-safe: the engine thread's alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/scheduling/batch_plan.h"
#include "engine/scheduling/kv_block_manager.h"
#include "engine/scheduling/policy.h"
#include "engine/scheduling/request_queue.h"
#include "engine/scheduling/scheduler_views.h"
#include "engine/scheduling/sequence.h"
#include "engine/scheduling/swap_pool.h"

namespace hearth {

struct SchedulerLimits {
  std::uint32_t max_sequences = 16;     // running at a time; slots are below it
  std::uint32_t max_step_tokens = 512;  // rows a step computes, padding included
  std::uint32_t context = 2048;         // tokens of a sequence, prompt and generated
  std::uint32_t pool_blocks = 1024;
  std::uint32_t swap_blocks = 0;   // of host memory; 0: preemption always recomputes
  std::uint32_t max_queue = 4096;  // requests that wait for their first admission
};

struct ForkPoint {
  RequestId parent = 0;
  std::uint32_t position = 0;  // leading tokens shared with it, at most
};

struct NewRequest {
  std::span<const TokenId> prompt;  // copied
  std::uint32_t max_new_tokens = 0;
  std::int32_t priority = 0;     // higher first
  std::uint64_t cache_salt = 0;  // requests with different salts share no cached prefix
  // Shares the parent's blocks instead of computing them, if the parent still runs when it is this
  // request's turn; as far as the prompts agree, and once the parent has computed that far.
  std::optional<ForkPoint> fork;
};

enum class Refusal : std::uint8_t { kNone, kInvalid, kTooLong, kQueueFull };

struct AddResult {
  Refusal refusal = Refusal::kNone;
  std::string message;  // for the user, with the numbers; empty if accepted
  bool accepted() const { return refusal == Refusal::kNone; }
};

// Whether the request could ever run under these limits, whatever else is there. Pure.
AddResult check_request(const SchedulerLimits& limits, const NewRequest& request);

class Scheduler {
 public:
  Scheduler(const SchedulerLimits& limits, const Policy& policy);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // REQUIRES: an id that was never used before.
  AddResult add(RequestId id, const NewRequest& request);
  // The next step. Valid until the next call.
  const BatchPlan& plan();
  // The oldest id sampled for this request that was not told yet. Ignored if it is gone.
  void token(RequestId id, TokenId token);
  // It ended or was cancelled: its blocks and slot are given back, in whatever state it is. Ignored
  // if it is gone. Also to be called for requests that reached max_new_tokens.
  void finish(RequestId id);
  // Waiting or running, it has this rank from the next plan on. Ignored if it is gone.
  void set_priority(RequestId id, std::int32_t priority);

  void set_policy(const Policy& policy);
  const Policy& policy() const { return policy_; }
  // max_sequences and pool_blocks at most what the constructor was given; pool_blocks 0: as it is.
  // Requests that run beyond the new limits go on until they end. Of a smaller pool the blocks
  // beyond it are withheld, the next plan putting out whom it must; it stays large enough for each
  // request that is there: see limits().
  void set_limits(std::uint32_t max_sequences, std::uint32_t max_step_tokens,
                  std::uint32_t pool_blocks = 0);
  const SchedulerLimits& limits() const { return limits_; }

  // Empties the prefix cache, as when the memory behind the blocks was lost.
  void forget_prefixes();

  // Whether no request is there, in whatever state.
  bool idle() const { return sequences_.empty(); }
  SchedulerCounts counts() const;
  const SchedulerTotals& totals() const { return totals_; }
  std::optional<SequenceView> sequence(RequestId id) const;
  // Overwrite the vector: every block of the pool; the running, then the waiting in their order.
  void view_blocks(std::vector<BlockView>& views) const;
  void view_sequences(std::vector<SequenceView>& views) const;

  // What is wrong inside or with the last plan, if anything.
  std::optional<std::string> check_integrity() const;

 private:
  enum class Phase : std::uint8_t { kBoth, kPrompts, kDecodes };
  // Where a waiting request would start if it were admitted now.
  struct Start {
    const Sequence* parent = nullptr;  // to fork from
    std::uint32_t hit_blocks = 0;      // found in the prefix cache
    std::uint32_t computed = 0;
    std::uint32_t need_blocks = 0;  // in all
    std::uint32_t new_blocks = 0;   // of those, taken out of what is available
  };

  Sequence* find(RequestId id) const;
  SequenceView view(const Sequence& sequence) const;
  std::optional<std::string> check_sequences() const;
  std::optional<std::string> check_plan() const;

  // The stages of plan(), in this order.
  void begin_step();
  void plan_phase(Phase phase);
  void choose_running(Phase phase);
  void keep_least_recent(std::uint32_t count);
  void give_blocks_to_running();
  void admit(Phase phase);
  void even_out();
  void finish_step();

  // Admission.
  bool admissible(const Sequence& sequence) const;
  const Sequence* fork_parent(const Sequence& sequence) const;
  Start find_start(const Sequence& sequence) const;
  void start(Sequence& sequence, const Start& start);
  void swap_in(Sequence& sequence);
  std::uint32_t promised_blocks() const;
  std::uint32_t planned_members() const;

  // Blocks.
  std::uint32_t chunk_limit(const Sequence& sequence, std::uint32_t tokens) const;
  std::uint32_t rows(std::uint32_t members) const;
  bool needs_copy(const Sequence& sequence) const;
  bool grow_for_step(Sequence& sequence);
  std::uint32_t tokens_that_fit(const Sequence& sequence) const;
  void remember_blocks(Sequence& sequence);
  void release_blocks(Sequence& sequence, std::size_t keep);

  // Leaving.
  void preempt(Sequence& sequence);
  void stop_running(Sequence& sequence);
  void list_as_running(Sequence& sequence);
  void leave_batch(Sequence& sequence);

  SchedulerLimits limits_;
  std::uint32_t slot_count_;  // the first max_sequences
  Policy policy_;
  KvBlockManager blocks_;
  SwapPool swap_;
  std::unordered_map<RequestId, std::unique_ptr<Sequence>> sequences_;
  RequestQueue queue_;
  std::vector<Sequence*> running_;     // by protection_rank: the last is preempted first
  std::vector<Sequence*> candidates_;  // scratch of choose_running
  std::vector<bool> slots_;            // taken ones
  std::uint64_t arrivals_ = 0;
  std::uint32_t new_waiting_ = 0, swapped_ = 0;

  // The batch of request admission.
  std::uint64_t batch_ = 0;
  std::uint32_t batch_live_ = 0;  // members that have not ended
  std::uint32_t batch_rows_ = 0;  // members it began with

  BatchPlan plan_;
  std::uint32_t plan_limit_ = 0;             // max_step_tokens when it was made
  bool short_of_blocks_ = false;             // in the step being planned
  std::uint32_t prompt_steps_in_a_row_ = 0;  // while decodes waited
  SchedulerTotals totals_;
};

}  // namespace hearth
