#include "engine/step_loop.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "engine/sampling/penalties.h"
#include "engine/sampling/sampler.h"
#include "params/sampling.h"

namespace hearth {
namespace {

std::vector<TopLogprob> read_top(const StepOutcome& outcome, size_t row, uint32_t top_logprobs) {
  std::vector<TopLogprob> top;
  if (top_logprobs == 0 || outcome.top.empty()) return top;
  top.reserve(top_logprobs);
  for (const params::TokenLogprob& entry :
       outcome.top.subspan(row * params::kMaxTopLogprobs, top_logprobs))
    if (entry.id != params::kNoToken) top.push_back({.id = entry.id, .logprob = entry.logprob});
  return top;
}

// The token sampled at a logit row, without text.
GeneratedToken read_row(const StepOutcome& outcome, size_t row, uint32_t top_logprobs) {
  const params::SamplingResult& sampled = outcome.sampled[row];
  return {.id = sampled.id,
          .logprob = sampled.logprob,
          .top = read_top(outcome, row, top_logprobs),
          .text = {}};
}

std::vector<params::TokenBias> device_biases(std::span<const LogitBias> biases) {
  std::vector<params::TokenBias> entries;
  entries.reserve(biases.size());
  for (const LogitBias& bias : biases) entries.push_back({.token = bias.token, .bias = bias.bias});
  return entries;
}

// Requests with contrastive search would miss every other step if the others ran ahead, who lose
// little by waiting.
bool waits_for_candidates(std::span<const SampledMember> members) {
  const auto searching = static_cast<size_t>(
      std::ranges::count_if(members, [](const auto& member) { return member.contrastive; }));
  return searching > 0 && 2 * searching >= members.size();
}

// A request's own member comes before its shadow.
void record_accepted(StepRecord& record, const SampledMember& member, uint32_t accepted) {
  if (member.proposed == 0) return;
  const auto found = std::ranges::find(record.members, member.request, &StepMember::request);
  if (found != record.members.end()) found->accepted = accepted;
}

}  // namespace

StepLoop::StepLoop(const Links& links, bool check_integrity)
    : links_(links),
      check_integrity_(check_integrity),
      batches_(links.scheduler.limits()),
      speculator_({.scheduler = links.scheduler, .time = links.time, .drafter = links.drafter},
                  links.speculation) {
  const size_t sequences = links.scheduler.limits().max_sequences;
  continuing_.reserve(sequences);
  for (StepInFlight& step : steps_) {
    step.sampled.reserve(sequences);
    step.record.reserve(sequences);
  }
}

Result<bool> StepLoop::begin() {
  const EngineClock::time_point begin = links_.time.now();
  links_.scheduler.set_time(begin.time_since_epoch());
  const BatchPlan& plan = links_.scheduler.plan();
  if (check_integrity_) check_integrity();
  if (plan.empty()) {
    // A request may have been swapped out although nothing can be computed now.
    if (const Status status = move_blocks(plan); !status.ok())
      HEARTH_TRY(fail_step(plan, false, status.error()));
    return false;
  }

  StepInFlight& step = steps_[(oldest_ + in_flight_) % steps_.size()];
  bool prepared = false;
  const auto submit = [&]() -> Status {
    HEARTH_TRY(move_blocks(plan));
    HEARTH_TRY(prepare_slots(plan, begin));
    prepared = true;
    reserve_hidden(plan);
    const StepBatch& batch = batches_.build(plan, links_.requests, step.sampled);
    step.pooled = batches_.pooled();
    HEARTH_ASSIGN(step.ticket, links_.executor.submit(batch));
    return {};
  };
  if (const Status status = submit(); !status.ok()) {
    HEARTH_TRY(fail_step(plan, prepared, status.error()));
    return true;
  }
  step.ahead = in_flight_ > 0;
  step.mask_seconds = std::exchange(mask_seconds_, 0);
  step.load = step_load(plan);
  ++in_flight_;
  last_begin_ = begin;
  const EngineClock::time_point submitted = links_.time.now();
  const SchedulerCounts counts = links_.scheduler.counts();
  describe_plan(plan, counts, step.record);
  step.record.begin_seconds = links_.publisher.seconds_at(begin);
  step.record.plan_seconds = std::chrono::duration<double>(submitted - begin).count();
  step.record.submit_seconds = links_.publisher.seconds_at(submitted);
  links_.publisher.show_counts(counts);
  return true;
}

bool StepLoop::holds_back() const {
  if (in_flight_ == 0) return false;
  const StepInFlight& newest = steps_[(oldest_ + in_flight_ - 1) % steps_.size()];
  return speculator_.holds_back(newest.sampled) || waits_for_masks(newest) ||
         waits_for_candidates(newest.sampled);
}

void StepLoop::check_integrity() const {
  const std::optional<std::string> wrong = links_.scheduler.check_integrity();
  if (!wrong) return;
  fmt::print(stderr, "hearth: the scheduler is inconsistent: {}\n", *wrong);
  std::abort();
}

Status StepLoop::move_blocks(const BatchPlan& plan) {
  if (!plan.swap_out.empty()) HEARTH_TRY(links_.executor.swap_out(plan.swap_out));
  if (!plan.swap_in.empty()) HEARTH_TRY(links_.executor.swap_in(plan.swap_in));
  if (!plan.copies.empty()) HEARTH_TRY(links_.executor.fork_blocks(plan.copies));
  return {};
}

Status StepLoop::prepare_slots(const BatchPlan& plan, EngineClock::time_point now) {
  count_prefix_hits(plan);
  for (const RequestId id : plan.admitted) {
    ActiveRequest& request = links_.requests.at(id);
    const SequenceView sequence = *links_.scheduler.sequence(id);
    const bool held = links_.scheduler.policy().delivery == Delivery::kWithBatch;
    const bool first = !request.admitted_before();
    links_.requests.admit(request, held ? sequence.batch : 0, now);
    if (first && request.constraint() != nullptr)
      request.end_after_step(deliver_forced(request, now));
    keeps_hidden_ |= request.contrastive() != nullptr;
    if (keeps_hidden_) HEARTH_TRY(links_.executor.reserve_hidden(sequence.slot, 0));
    request.set_staged_hidden(0);
    HEARTH_TRY(write_slot(sequence.slot, request));
    request.all_counted();
  }
  return {};
}

// Writes the token history and the logit biases of a newly admitted request into its slot, where
// sampling finds them.
Status StepLoop::write_slot(uint32_t slot, const ActiveRequest& request) {
  if (request.uses_history()) {
    const std::span<const TokenId> tokens(request.tokens());
    HEARTH_TRY(links_.executor.set_history(
        slot,
        count_tokens(tokens.first(request.prompt_tokens()), tokens.subspan(request.prompt_tokens()),
                     request.request().sampling.repetition_penalty, StepExecutor::kHistoryTokens)));
  }
  if (const std::vector<LogitBias> biases = request.next_biases(); !biases.empty())
    HEARTH_TRY(links_.executor.set_biases(slot, device_biases(biases)));
  return {};
}

void StepLoop::count_prefix_hits(const BatchPlan& plan) {
  for (const BatchPlan::PrefixHit& hit : plan.prefix_hits)
    // After a preemption a request finds its own blocks; those are not counted as cached.
    if (ActiveRequest& request = links_.requests.at(hit.request); !request.admitted_before())
      // A cached block may continue with tokens that the request's grammar forces.
      request.add_cached_tokens(std::min(hit.tokens, request.prompt_tokens()));
}

// A step could not be submitted: its members end with the error, all others continue. If it failed
// before its preparations were complete, requests whose blocks were to be moved or whose slots were
// to be set end, too.
Status StepLoop::fail_step(const BatchPlan& plan, bool prepared, const Error& error) {
  if (error.kind == ErrorKind::kDeviceLost) return error;
  failed_.clear();
  for (const BatchMember& member : plan.members) failed_.push_back(member.request);
  if (!prepared)
    for (const std::vector<RequestId>* list : {&plan.admitted, &plan.preempted_swap})
      failed_.insert(failed_.end(), list->begin(), list->end());
  for (const RequestId id : failed_) links_.requests.end(id, FinishReason::kError, error.message);
  // The scheduler assumes that the step has filled its blocks, so cached prefixes may be wrong.
  links_.scheduler.forget_prefixes();
  return {};
}

Status StepLoop::finish() {
  StepInFlight& step = steps_[oldest_];
  const EngineClock::time_point waiting = links_.time.now();
  const Result<StepOutcome> outcome = links_.executor.wait(step.ticket);
  const EngineClock::time_point now = links_.time.now();
  oldest_ = (oldest_ + 1) % steps_.size();
  --in_flight_;
  if (!outcome.ok()) return outcome.error();
  add_pooled(step, *outcome);
  const Status delivered = deliver(step, *outcome, now);
  masks_.start();
  publish(step, waiting, now);
  return delivered;
}

// Before deliver(), which may end these requests.
void StepLoop::add_pooled(const StepInFlight& step, const StepOutcome& outcome) {
  if (step.pooled.empty()) return;
  const PooledMember& last = step.pooled.back();
  const size_t width = outcome.pooled.size() / (last.first_range + last.ranges);
  for (const PooledMember& member : step.pooled)
    if (const ActiveRequest* request = links_.requests.find(member.request))
      request->pooling()->add(
          outcome.pooled.subspan(member.first_range * width, member.ranges * width), member.ranges);
}

Status StepLoop::deliver(StepInFlight& step, const StepOutcome& outcome,
                         EngineClock::time_point now) {
  continuing_.clear();
  for (const SampledMember& member : step.sampled) {
    ActiveRequest* request = links_.requests.find(member.request);
    if (request == nullptr) continue;  // it ended while this step was in flight
    if (member.scored > 0 && !deliver_scores(*request, member, outcome)) continue;
    if (!member.samples) continue;
    if (!request->request().generate) {
      links_.requests.end(member.request, FinishReason::kLength);
      continue;
    }
    if (request->beams() != nullptr) {
      take_beam(*request, member, outcome, now);
      continue;
    }
    if (request->contrastive() != nullptr) {
      accepted_candidates_ = 0;
      if (!take_candidates(*request, member, outcome, now)) --step.record.sampled_tokens;
      record_accepted(step.record, member, accepted_candidates_);
      continue;
    }
    if (request->takes_back()) {
      // This step was planned before the host knew that its token would have to go.
      links_.scheduler.token(member.request, outcome.sampled[member.first_row].id);
      take_back(*request);
      continue;
    }
    bool continues = false;
    if (member.awaits_host) {
      continues = judge(*request, member, outcome, now);
      step.record.sampled_tokens += static_cast<uint32_t>(judgement_.path.size());
      record_accepted(step.record, member, static_cast<uint32_t>(judgement_.path.size()));
    } else {
      const TokenId id = outcome.sampled[member.first_row].id;
      links_.scheduler.token(member.request, id);
      continues = deliver_row(*request, outcome, member.first_row, id, now);
    }
    if (!continues) continue;
    if (request->constraint() != nullptr)
      constrain(*request, static_cast<uint32_t>(judgement_.path.size()) + 1);
    else if (request->speculation() != nullptr)
      continuing_.push_back(request);
    if (request->takes_back())
      take_back(*request);
    else if (request->has_banned_strings() && member.awaits_host)
      settle_bans(*request);
  }
  return speculator_.propose(continuing_);
}

bool StepLoop::deliver_scores(ActiveRequest& request, const SampledMember& member,
                              const StepOutcome& outcome) {
  for (uint32_t row = member.first_row - member.scored; row < member.first_row; ++row) {
    const params::SamplingResult& result = outcome.sampled[row];
    if (auto fault = sampling_fault(result, request.next_scored())) {
      links_.requests.end(request.id(), FinishReason::kError, std::move(*fault));
      return false;
    }
    request.add_prompt_logprob(
        {.logprob = result.logprob,
         .top = read_top(outcome, row, request.request().sampling.top_logprobs)});
  }
  return true;
}

// Delivers the token of a logit row, and ends the request if it was its last, or if there is none.
bool StepLoop::deliver_row(ActiveRequest& request, const StepOutcome& outcome, size_t row,
                           TokenId id, EngineClock::time_point now) {
  if (auto fault = sampling_fault(outcome.sampled[row], request.tokens().size())) {
    links_.requests.end(request.id(), FinishReason::kError, std::move(*fault));
    return false;
  }
  if (row < outcome.mirostat.size()) request.set_mirostat(outcome.mirostat[row]);
  GeneratedToken token = read_row(outcome, row, request.request().sampling.top_logprobs);
  token.id = id;
  const FinishReason reason = accept(request, std::move(token), now);
  if (reason == FinishReason::kNone) return true;
  links_.requests.end(request.id(), reason);
  return false;
}

FinishReason StepLoop::accept(ActiveRequest& request, GeneratedToken token,
                              EngineClock::time_point now) {
  if (Speculation* speculation = request.speculation())
    speculation->append(std::span(&token.id, 1));
  const FinishReason reason = request.accept(std::move(token), now);
  links_.publisher.generated_token();
  if (request.has_banned_strings())
    links_.requests.deliver_certain(request);
  else if (!request.held())
    links_.publisher.delivered_token(request);
  return reason;
}

// Commits the proposals that match what the model sampled, and the token after them.
bool StepLoop::judge(ActiveRequest& request, const SampledMember& member,
                     const StepOutcome& outcome, EngineClock::time_point now) {
  const RequestId id = request.id();
  if (request.early_end() != FinishReason::kNone) {
    judgement_.path.clear();
    links_.requests.end(id, request.early_end());
    return false;
  }
  const TokenLedger& ledger = *links_.scheduler.ledger(id);
  const uint32_t committed = ledger.committed();
  sampled_.clear();
  for (uint32_t i = 0; i <= member.proposed; ++i)
    sampled_.push_back(outcome.sampled[member.first_row + i].id);
  const std::span<const TokenId> proposed = ledger.tokens().subspan(committed);
  // A grammar allows only what was sampled.
  if (request.constraint() == nullptr) speculator_.settle(id, proposed, sampled_);
  judge_proposals(proposed, ledger.parents(), sampled_, judgement_, links_.speculation.in_place);
  const auto accepted = static_cast<uint32_t>(judgement_.path.size());
  if (member.proposed > 0) links_.publisher.judged(member.proposed, accepted);
  request.count_judged(member.proposed, accepted);
  if (Speculation* speculation = request.speculation()) {
    if (speculation->from_others()) links_.publisher.judged_shared(member.proposed, accepted);
    speculation->judged(member.proposed, accepted, sampled_);
  }
  if (ledger.parents().empty()) {
    links_.scheduler.commit(id, accepted);
    links_.scheduler.truncate(id, committed + accepted);
  } else {
    links_.scheduler.commit_path(id, judgement_.path);
  }
  // The slot's history has counted none of these.
  request.add_uncounted(accepted + 1);
  // An accepted token was sampled after the token before it.
  uint32_t row = 0;
  for (const uint32_t proposal : judgement_.path) {
    if (!deliver_row(request, outcome, member.first_row + row, sampled_[row], now)) return false;
    row = 1 + proposal;
  }
  // With a grammar, resume() reports the token.
  if (request.constraint() == nullptr) links_.scheduler.token(id, sampled_[judgement_.next_row]);
  return deliver_row(request, outcome, member.first_row + judgement_.next_row,
                     sampled_[judgement_.next_row], now);
}

// Tells the scheduler which tokens the request has taken back, and what it may not draw instead. A
// request that has run ahead of the host first has to wait for its pending token.
void StepLoop::take_back(ActiveRequest& request) {
  const RequestId id = request.id();
  links_.scheduler.set_with_host(id, true);
  if (links_.scheduler.ledger(id)->pending()) return;
  links_.scheduler.truncate(id, static_cast<uint32_t>(request.tokens().size()));
  request.took_back();
  rewrite_slot(request);
}

// The draw at a place with bans is over. Those that replaced a bias of the request's own must not
// stay in its slot, which is why it waited for the host there.
void StepLoop::settle_bans(ActiveRequest& request) {
  links_.scheduler.set_with_host(request.id(), request.samplers().need_host());
  rewrite_slot(request);
}

// Writes what sampling finds in the slot of a running request; others get it at admission.
void StepLoop::rewrite_slot(ActiveRequest& request) {
  const SequenceView sequence = *links_.scheduler.sequence(request.id());
  if (sequence.state != SequenceState::kRunning) return;
  request.all_counted();
  if (const Status status = write_slot(sequence.slot, request); !status.ok())
    links_.requests.end(request.id(), FinishReason::kError, status.error().message);
}

// What the host did between the end of the previous step and the submission of this one, which was
// not planned ahead; without the time that there was nothing to do.
double StepLoop::host_seconds_before(const StepInFlight& step) const {
  const double prepared = step.mask_seconds + step.record.plan_seconds;
  if (last_end_ == EngineClock::time_point{}) return prepared;  // the first step
  return prepared + last_left_seconds_ - links_.publisher.seconds_at(last_end_);
}

void StepLoop::publish(StepInFlight& step, EngineClock::time_point waiting,
                       EngineClock::time_point now) {
  StepRecord& record = step.record;
  const double done = links_.publisher.seconds_at(now);
  record.run_seconds =
      done - std::max(record.submit_seconds, links_.publisher.seconds_at(last_end_));
  last_run_seconds_ = record.run_seconds;
  record.wait_seconds = std::chrono::duration<double>(now - waiting).count();
  if (step.ahead)
    mask_pace_.ran_ahead(record.run_seconds);
  else
    mask_pace_.waited(record.run_seconds, host_seconds_before(step));
  record.end_seconds = done;
  // What it took since the last step, without the time that the loop was not asked to begin it.
  speculator_.took(record,
                   done - links_.publisher.seconds_at(last_end_) -
                       std::max(0.0, record.begin_seconds - last_left_seconds_),
                   step.ahead);
  // As the members' readers see it.
  links_.scheduler.took(
      step.load, done - std::max(record.begin_seconds, links_.publisher.seconds_at(last_end_)));
  last_end_ = now;
  links_.requests.report(record);
  links_.publisher.show_counts(links_.scheduler.counts());
  links_.publisher.publish(record, links_.scheduler.totals());
  last_left_seconds_ = links_.publisher.seconds_at(links_.time.now());
}

}  // namespace hearth
