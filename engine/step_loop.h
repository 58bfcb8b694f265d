// Runs steps, up to two in flight:
//
//   begin():   plan -> move blocks -> prepare slots -> build the batch -> submit
//   finish():  read the drafts it verifies -> wait for the oldest step -> judge proposals -> tokens
//              to their requests -> propose -> record
//   resume_constrained():  requests whose next masks are ready may be planned again
//
// The caller begins step n + 1 before it finishes step n, so that the host prepares a step while
// the device runs the previous one. Used by the engine thread only.
//
// A request with a grammar is not planned again before its next mask is there. Threads compute the
// masks (mask_workers.h); the scheduler learns the token that was sampled only then, so that a late
// mask delays no other request. If enough members of a step have a grammar, the next step is
// planned after it has ended and their masks are ready (mask_pace.h); otherwise they miss every
// other step. A late request waits for those in flight and joins them again: a step takes hardly
// less time with half of them.
//
// A step that cannot be submitted ends the requests it was for, and all others continue. An error
// from begin() or finish() means that the device is lost: the caller ends every request and calls
// abandon().
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "engine/batch_builder.h"
#include "engine/decoding/acceptance.h"
#include "engine/generation.h"
#include "engine/mask_pace.h"
#include "engine/mask_workers.h"
#include "engine/model/step_executor.h"
#include "engine/publisher.h"
#include "engine/request_table.h"
#include "engine/scheduling/scheduler.h"
#include "engine/speculator.h"
#include "engine/step_record.h"
#include "engine/time_source.h"
#include "runtime/result.h"

namespace hearth {

class StepLoop {
 public:
  // What a step goes through; all of it outlives the loop.
  struct Links {
    StepExecutor& executor;
    Scheduler& scheduler;
    RequestTable& requests;
    Publisher& publisher;
    const TimeSource& time;
    SpeculationOptions speculation = {};
    Drafter* drafter = nullptr;  // null: there is no draft model
  };
  // Reserves room for steps within the scheduler's limits. With `check_integrity`, the scheduler's
  // invariants are checked after every plan, and a violation aborts with a message.
  StepLoop(const Links& links, bool check_integrity);
  StepLoop(const StepLoop&) = delete;
  StepLoop& operator=(const StepLoop&) = delete;

  bool idle() const { return in_flight_ == 0; }
  bool full() const { return in_flight_ == StepExecutor::kStepsInFlight; }
  // Whether the next step should not begin before those in flight are finished, because it is to
  // judge proposals that depend on them, or because their members with a grammar would miss it.
  // Beginning it is no mistake, only slower.
  bool holds_back() const;
  // When the last step that was submitted began; the epoch before the first.
  EngineClock::time_point last_begin() const { return last_begin_; }

  // Plans the next step and submits it. False if there is nothing to compute. REQUIRES: !full().
  Result<bool> begin();
  // Waits for the oldest step in flight, and delivers and publishes its results. REQUIRES: !idle().
  Status finish();
  // Waits a little for the masks of constrained requests, commits the tokens that have to follow,
  // and lets the scheduler plan those that are ready. To be called before each begin().
  Status resume_constrained();
  // Reads drafts that no step will follow at once. To be called when the loop is idle() and no step
  // begins, so that a pause does not count as the time that drafts took.
  Status rest();
  // Whether masks are being computed.
  bool constraining() const { return masks_.busy(); }
  // Forgets the steps in flight, whose results will never come.
  void abandon() { in_flight_ = 0; }

 private:
  struct StepInFlight {
    StepTicket ticket;
    std::vector<SampledMember> sampled;
    std::vector<PooledMember> pooled;
    StepRecord record;
    StepLoad load;
    bool ahead = false;   // planned while another step was in flight
    uint64_t drafts = 0;  // the round of drafts that the host had yet to read when it was planned
    EngineClock::time_point drafts_end = {};  // when it had read them
    double mask_seconds = 0;                  // that it waited for masks
  };

  void check_integrity() const;
  Status move_blocks(const BatchPlan& plan);
  Status fail_step(const BatchPlan& plan, bool prepared, const Error& error);
  void add_pooled(const StepInFlight& step, const StepOutcome& outcome);
  Status deliver(StepInFlight& step, const StepOutcome& outcome, EngineClock::time_point now);
  // Both return the reason to end the request now, or kNone.
  FinishReason accept(ActiveRequest& request, GeneratedToken token, EngineClock::time_point now);
  FinishReason deliver_forced(ActiveRequest& request, EngineClock::time_point now);
  void deliver_member(ActiveRequest& request, const SampledMember& member, StepRecord& record,
                      const StepOutcome& outcome, EngineClock::time_point now);
  void prepare_next(ActiveRequest& request, const SampledMember& member);
  // All four return false if the request has ended with this.
  bool deliver_tokens(ActiveRequest& request, const SampledMember& member, StepRecord& record,
                      const StepOutcome& outcome, EngineClock::time_point now);
  bool deliver_scores(ActiveRequest& request, const SampledMember& member,
                      const StepOutcome& outcome);
  bool deliver_row(ActiveRequest& request, const StepOutcome& outcome, size_t row, TokenId id,
                   EngineClock::time_point now);
  // Judging; in step_loop_judging.cpp.
  bool judge(ActiveRequest& request, const SampledMember& member, const StepOutcome& outcome,
             EngineClock::time_point now);
  void take_back(ActiveRequest& request);
  void settle_bans(ActiveRequest& request);
  // Slots; in step_loop_slots.cpp.
  Status prepare_slots(const BatchPlan& plan, EngineClock::time_point now);
  void count_prefix_hits(const BatchPlan& plan);
  Status write_slot(uint32_t slot, ActiveRequest& request);
  void rewrite_slot(ActiveRequest& request);
  // Beam search; in step_loop_beams.cpp.
  void take_beam(ActiveRequest& request, const SampledMember& member, const StepOutcome& outcome,
                 EngineClock::time_point now);
  void deliver_beams(BeamGroup& beams, EngineClock::time_point now);
  // Contrastive search; in step_loop_contrastive.cpp.
  void reserve_hidden(const BatchPlan& plan);
  bool take_candidates(ActiveRequest& request, const SampledMember& member,
                       const StepOutcome& outcome, EngineClock::time_point now);
  bool take_best(ActiveRequest& request, uint32_t computed, EngineClock::time_point now);
  // Grammars; in step_loop_grammars.cpp.
  void constrain(ActiveRequest& request, uint32_t new_tokens);
  Status resume(ActiveRequest& request, EngineClock::time_point now);
  Status count_forced(ActiveRequest& request);
  bool constrained_in_flight() const;
  bool waits_for_masks(const StepInFlight& newest) const;
  // How long steps take; what is shown of them.
  double host_seconds_before(const StepInFlight& step) const;
  void publish(StepInFlight& step, EngineClock::time_point waiting, EngineClock::time_point now);

  Links links_;
  const bool check_integrity_;
  BatchBuilder batches_;
  std::array<StepInFlight, StepExecutor::kStepsInFlight> steps_;
  size_t oldest_ = 0, in_flight_ = 0;  // a ring in steps_
  EngineClock::time_point last_begin_ = {}, last_end_ = {};
  double last_left_seconds_ = 0;   // when finish() last returned, in the records' seconds
  double last_run_seconds_ = 0;    // of the last step that is done
  std::vector<RequestId> failed_;  // scratch space of fail_step()
  std::vector<uint32_t> sampled_, accepted_;  // by row; scratch space of judge()
  Judgement judgement_;
  uint32_t accepted_candidates_ = 0;  // by the last take_candidates()
  bool keeps_hidden_ = false;         // for some request, now or earlier
  MaskWorkers masks_;
  MaskPace mask_pace_;
  double mask_seconds_ = 0;          // that the next step has waited for masks so far
  uint32_t held_ = 0;                // steps that constrained requests have waited for others
  std::vector<RequestId> advanced_;  // scratch space of resume_constrained()
  Speculator speculator_;
  std::vector<ActiveRequest*> continuing_;  // scratch space of deliver()
};

}  // namespace hearth
