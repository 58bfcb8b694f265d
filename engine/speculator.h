// Speculation for all requests of an engine: which of them propose how many tokens in the next
// step. Measures what steps cost on the way. Used by the step loop, on the engine thread.
//
// With methods that weigh costs, either the whole batch runs ahead of the host, or every request
// waits until the step in flight is judged: a request that waits alone would miss every other step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/active_request.h"
#include "engine/batch_builder.h"
#include "engine/decoding/speculation/length_choice.h"
#include "engine/decoding/speculation/row_costs.h"
#include "engine/decoding/speculation/speculation.h"
#include "engine/drafter.h"
#include "engine/scheduling/scheduler.h"
#include "engine/step_record.h"
#include "engine/time_source.h"
#include "runtime/result.h"

namespace hearth {

class Speculator {
 public:
  // What it works with; all of it outlives this. Without a drafter, nothing is drafted.
  struct Links {
    Scheduler& scheduler;
    const TimeSource& time;
    Drafter* drafter = nullptr;
  };
  Speculator(const Links& links, const SpeculationOptions& options);
  Speculator(const Speculator&) = delete;
  Speculator& operator=(const Speculator&) = delete;

  // Whether the next step should only be planned after a step with these members is judged, and all
  // steps before it.
  bool holds_back(std::span<const SampledMember> members) const;
  // With synthetic acceptance, replaces what the model sampled and accepted, by row, so that each
  // proposal of a chain is accepted with the given probability.
  void settle(RequestId request, std::span<const TokenId> proposed, std::span<TokenId> sampled,
              std::span<std::uint32_t> accepted);
  // A step with these requests is judged and delivered: proposes tokens for their next one. Drafts
  // may be proposed unread (unread_token.h), so that the step that verifies them is submitted
  // before the draft model's steps are done. An error means that the device is lost.
  Status propose(std::span<ActiveRequest* const> requests);
  // The round of drafts that were proposed unread, or 0 if all were read. A step that is planned
  // meanwhile must not be judged before collect(). Rounds count from 1.
  std::uint64_t unread_round() const { return unread_ ? round_ : 0; }
  // Waits for those drafts and tells the scheduler their ids. An error means that the device is
  // lost; if only the draft model has failed, drafts that no step verifies yet are dropped.
  Status collect();
  // When the host had read the drafts of the last round that it has read; the epoch for others.
  EngineClock::time_point read_at(std::uint64_t round) const {
    return round == read_round_ ? read_at_ : EngineClock::time_point{};
  }
  // A step took this long, from the end of the one before it. `ahead`: it was planned before that
  // end.
  void took(const StepRecord& record, double seconds, bool ahead);

 private:
  void propose_by_cost(std::span<ActiveRequest* const> requests);
  void propose_length(ActiveRequest& request, uint32_t length);
  // Most tokens that can be proposed for the request without exceeding its length.
  uint32_t room(const ActiveRequest& request) const;
  Status draft();
  Status read_drafts();
  Status stop_drafting(const Error& error);
  // Without regard to costs. A request that has run ahead of the host first has to wait for its
  // pending token; it does so only if there seems to be something to propose.
  void propose_alone(ActiveRequest& request);

  Links links_;
  const SpeculationOptions options_;
  RowCosts ahead_, waiting_;
  LengthChoice choice_;
  AcceptanceRates rates_ = shared_rates();
  bool waits_ = false;  // something is to be proposed once no request has a pending token
  std::uint64_t draws_ = 0;
  std::vector<ProposalChance> chances_;
  std::vector<std::uint32_t> lengths_;
  std::vector<DraftJob> jobs_;  // the first job_count_ are for the present round
  std::size_t job_count_ = 0;
  bool ids_needed_ = false;  // by a request of the present round: needs_proposed_ids()
  bool unread_ = false;      // the jobs' drafts were proposed before collect()
  std::uint64_t round_ = 0, read_round_ = 0;
  EngineClock::time_point drafting_since_ = {}, read_at_ = {};
  double draft_seconds_ = 0, drafted_before_seconds_ = 0;  // in the last round and the one before
  double draft_step_seconds_ = 0;                          // per level, on average
};

}  // namespace hearth
