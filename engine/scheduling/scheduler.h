// Decides what each step computes: which requests run, how many tokens of each, in which KV blocks,
// and which requests are preempted. Knows no GPU, no clock and no text.
//
// plan() is called for step n + 1 while step n is in flight. Plans are executed in order, so a
// planned step counts as done: a request's `computed` grows at once, the next plan may reuse the
// blocks that the request releases and may share the blocks that it fills. Every non-empty plan
// must be run, and the block moves of every plan must be made. The caller reports a token sampled
// in step n with token() before it asks for the plan of step n + 2, and the end of a request with
// finish(); by then at most one token and the rejected proposals were computed in vain.
//
// A request whose next step depends on what the host makes of the last one (see token_ledger.h)
// is left out of the plans until the host has judged the outcome: it calls commit() for the
// accepted proposals, truncate() for the others, and token() for the token that follows. All other
// requests stay one step ahead.
//
// Guarantees: a plan is empty only if no request can make progress before another call of a
// function that changes something, or before window_closes(); every accepted request is served
// eventually, whatever arrives after it. Planning a decode step does not allocate.
//
// Not thread-safe: used by the engine thread alone.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/scheduling/batch_plan.h"
#include "engine/scheduling/kv_block_manager.h"
#include "engine/scheduling/new_request.h"
#include "engine/scheduling/policy.h"
#include "engine/scheduling/request_queue.h"
#include "engine/scheduling/scheduler_limits.h"
#include "engine/scheduling/scheduler_views.h"
#include "engine/scheduling/sequence.h"
#include "engine/scheduling/step_times.h"
#include "engine/scheduling/swap_pool.h"

namespace hearth {

class Scheduler {
 public:
  Scheduler(const SchedulerLimits& limits, const Policy& policy);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // REQUIRES: the id was never used before.
  AddResult add(RequestId id, const NewRequest& request);
  // Plans the next step. Valid until the next call.
  const BatchPlan& plan();
  // Reports the oldest pending token of the request, or the one that follows the judged outcome.
  // Ignored if the request is gone.
  void token(RequestId id, TokenId token);

  // The ledger of a request; see TokenLedger for what each call requires. All are ignored if the
  // request is gone. They may be called whether it runs, waits or is swapped out.
  // Proposes tokens for the next step and returns how many were taken. A step may drop the last of
  // them, if they exceed its budget or the free blocks: a guess never preempts a request.
  std::uint32_t propose(RequestId id, std::span<const TokenId> tokens,
                        std::span<const std::uint32_t> parents = {});
  void learn_proposals(RequestId id, std::span<const TokenId> tokens);
  // Proposes candidates for the next token of a request that was added with such.
  void propose_candidates(RequestId id, std::span<const TokenId> candidates);
  // Takes one of those that the last step computed. Its block becomes the text's.
  void take_candidate(RequestId id, std::uint32_t candidate);
  void commit(RequestId id, std::uint32_t count);
  void commit_path(RequestId id, std::span<const std::uint32_t> path);
  void truncate(RequestId id, std::uint32_t count);
  // Appends final tokens that no step sampled, as many as leave room for one that a step samples.
  void force(RequestId id, std::span<const TokenId> tokens);
  // Whether each of the request's steps is judged by the host before the next one. Requests with
  // proposals are, anyway.
  void set_with_host(RequestId id, bool with_host);
  // Makes `id` a copy of `parent`: the same tokens, and the same blocks, which are copied when they
  // are written to. A new `id` takes one of the seats that the request was added with. All forks of
  // a request are a group: they run, wait and are preempted together. REQUIRES: `id` is new or in
  // the group; both are awaiting(); a new one is made while `parent` still has a seat for it.
  void fork(RequestId id, RequestId parent);
  // Null if the request is gone. Valid until the next call.
  const TokenLedger* ledger(RequestId id) const { return find(id); }

  // The scheduler has no clock: the caller says what time it is. Never goes back.
  void set_time(std::chrono::nanoseconds now) { now_ = now; }
  // Whether more requests may come. If not, no batch waits for them. True at first.
  void expect_arrivals(bool expected) { arrivals_expected_ = expected; }
  // A planned step took this long, from the end of the step before it or from its own beginning.
  // Later plans limit their prompt tokens accordingly, if there is a target.
  void took(const StepLoad& load, double seconds) { times_.add(load, seconds); }
  // When the batch that plan() holds back starts at the latest, if there is one.
  std::optional<std::chrono::nanoseconds> window_closes() const { return window_closes_; }

  // The request ended or was cancelled: releases its blocks and slot, in whatever state it is. Must
  // be called for requests that reached max_new_tokens, too. Ignored if the request is gone.
  void finish(RequestId id);
  // Takes effect with the next plan, whether the request waits or runs. Ignored if it is gone.
  void set_priority(RequestId id, std::int32_t priority);

  void set_policy(const Policy& policy);
  const Policy& policy() const { return policy_; }
  // max_sequences and pool_blocks can be at most what the constructor was given; pool_blocks 0
  // leaves the pool as it is. Running requests beyond the new limits continue until they end.
  // A smaller pool withholds blocks, and the next plan preempts requests if necessary; the pool
  // always stays large enough for each accepted request on its own, see limits().
  void set_limits(std::uint32_t max_sequences, std::uint32_t max_step_tokens,
                  std::uint32_t pool_blocks = 0);
  const SchedulerLimits& limits() const { return limits_; }

  // `observer` learns which blocks can be found in the prefix cache; may be null. To be called
  // before the first request is added. The observer outlives the scheduler.
  void observe_blocks(BlockObserver* observer);

  // Empties the prefix cache. For when the contents of the blocks cannot be trusted.
  void forget_prefixes();

  // Whether there is no request at all.
  bool idle() const { return sequences_.empty(); }
  SchedulerCounts counts() const;
  const SchedulerTotals& totals() const { return totals_; }
  std::optional<SequenceView> sequence(RequestId id) const;
  // Overwrites `views` with every block of the pool.
  void view_blocks(std::vector<BlockView>& views) const;
  // Overwrites `views` with the running requests, then the waiting ones in queue order.
  void view_sequences(std::vector<SequenceView>& views) const;
  // Overwrites `ids` with the block tables of the running requests, one after the other in the
  // order of view_sequences().
  void view_block_tables(std::vector<BlockId>& ids) const;

  // Describes the first broken invariant, of the scheduler or of its last plan, if there is one.
  std::optional<std::string> check_integrity() const;

 private:
  enum class Phase : std::uint8_t { kBoth, kPrompts, kDecodes };
  // Where a waiting request would start if it were admitted now.
  struct Start {
    const Sequence* parent = nullptr;  // to fork from
    std::uint32_t hit_blocks = 0;      // found in the prefix cache
    std::uint32_t computed = 0;        // tokens that need not be computed
    std::uint32_t need_blocks = 0;     // total
    std::uint32_t new_blocks = 0;      // of those, how many reduce the available blocks
  };

  Sequence* find(RequestId id) const;
  SequenceView view(const Sequence& sequence) const;
  std::optional<std::string> check_sequences() const;
  std::optional<std::string> check_plan() const;

  // The stages of plan(), in order; in scheduler_plan.cpp.
  void begin_step();
  void drop_stale_cache(Sequence& sequence);
  void limit_logit_rows(Sequence& sequence);
  void limit_forks(RequestId id, std::uint32_t tokens);
  void plan_mixed();
  void plan_one_phase();
  void plan_phase(Phase phase);
  void choose_running(Phase phase);
  std::uint32_t list_candidates(Phase phase);
  void keep_least_recent(std::uint32_t count);
  void divide_budget(Phase phase, std::uint32_t left);
  void limit_time(Phase phase);
  std::uint32_t chunk_limit(const Sequence& sequence, std::uint32_t tokens) const;
  std::uint32_t take_chunk(const Sequence& sequence, std::uint32_t& left);
  std::uint32_t target_ms() const;
  std::uint32_t rows(std::uint32_t members) const;
  void give_blocks_to_running();
  void admit(Phase phase);
  void equalize_chunks();
  std::uint32_t planned_members() const;
  void finish_step();
  BatchMember add_member(Sequence& sequence);
  void add_scores(Sequence& sequence, BatchMember& member);
  void add_lists(const Sequence& sequence, BatchMember& member);
  void list_forks_as_admitted();

  // Admission; in scheduler_admission.cpp.
  std::uint32_t most_members() const;
  std::uint32_t taken_seats() const;
  std::uint32_t rows_left() const;
  std::uint32_t waiting_members(std::uint32_t index) const;
  std::size_t others_need(std::uint32_t index, std::uint32_t members) const;
  void take_slot(Sequence& sequence);
  void join_batch(Sequence& sequence);
  void plan_admitted(Sequence& sequence, std::uint32_t& left);
  bool waits_for_batch_to_fill();
  bool admissible(const Sequence& sequence) const;
  const Sequence* fork_parent(const Sequence& sequence) const;
  Start find_start(const Sequence& sequence) const;
  void start(Sequence& sequence, const Start& start);
  void swap_in(Sequence& sequence);
  std::uint32_t promised_blocks() const;

  // The blocks of a sequence; in scheduler_blocks.cpp.
  bool needs_copy(const Sequence& sequence) const;
  bool grow_for_step(Sequence& sequence);
  std::uint32_t tokens_that_fit(const Sequence& sequence) const;
  bool caches_prefixes() const { return policy_.prefix_cache && policy_.kv != KvAllocation::kNone; }
  void remember_blocks(Sequence& sequence);
  void trim_blocks(Sequence& sequence, bool took_back);
  void release_blocks(Sequence& sequence, std::size_t keep);

  void copy_to_candidates(const Sequence& sequence);  // in scheduler_candidates.cpp

  // Groups and shadows; in scheduler_groups.cpp.
  std::size_t group_end(std::size_t first) const;
  Sequence& add_fork(RequestId id, Sequence& parent);
  bool make_room_for_group(std::size_t first, std::size_t end);
  std::uint32_t wanted_blocks(std::size_t first, std::size_t end) const;
  void add_shadow(Sequence& sequence, const NewRequest& request);
  void sample_in_pairs();

  // Preemption; in scheduler_preemption.cpp.
  Sequence& victim(std::size_t first) const;
  void preempt(Sequence& sequence);
  void preempt_one(Sequence& sequence);

  void set_priority(Sequence& sequence, std::int32_t priority);
  void stop_running(Sequence& sequence);
  void list_as_running(Sequence& sequence);
  void leave_batch(Sequence& sequence);

  SchedulerLimits limits_;
  std::uint32_t slot_count_;  // max_sequences as the constructor was given it
  Policy policy_;
  KvBlockManager blocks_;
  BlockObserver* observer_ = nullptr;
  SwapPool swap_;
  std::unordered_map<RequestId, std::unique_ptr<Sequence>> sequences_;
  RequestQueue queue_;
  std::vector<Sequence*> running_;     // by protection_rank: the last is preempted first
  std::vector<Sequence*> candidates_;  // scratch space of choose_running
  std::vector<bool> slots_;            // true: taken
  std::vector<RequestId> forked_;      // since the last plan; it lists them as admitted
  std::uint64_t arrivals_ = 0;
  std::uint32_t new_waiting_ = 0, swapped_ = 0;

  // The batch of request admission.
  std::uint64_t batch_ = 0;
  std::uint32_t batch_live_ = 0;  // members that have not ended
  std::uint32_t batch_rows_ = 0;  // members it started with
  std::chrono::nanoseconds now_{0};
  bool arrivals_expected_ = true;
  std::optional<std::chrono::nanoseconds> window_closes_;

  BatchPlan plan_;
  std::uint32_t plan_limit_ = 0;             // max_step_tokens when the plan was made
  bool short_of_blocks_ = false;             // while planning this step
  std::uint32_t logit_rows_left_ = 0;        // beyond one per sequence, for this step
  std::uint32_t prompt_steps_in_a_row_ = 0;  // while decodes were waiting

  // A target for the time of steps; in scheduler_time.cpp.
  StepTimes times_;
  std::optional<double> time_limit_;       // of the step being planned, in seconds
  StepLoad load_;                          // what the step has so far, if it has a limit
  std::uint32_t timed_prompt_tokens_ = 0;  // those in it
  bool time_is_used_up_ = false;
  SchedulerTotals totals_;
};

}  // namespace hearth
