#include "engine/step_loop.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>

#include <fmt/format.h>

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
      batches_(links.scheduler.limits(), links.speculation.in_place),
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
  step.drafts = speculator_.unread_round();
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
  // An executor makes the moves of a call in any order, and may wait between two calls.
  for (std::span<const BlockMove> copies = plan.copies; !copies.empty();) {
    const std::size_t count = independent_moves(copies);
    HEARTH_TRY(links_.executor.fork_blocks(copies.first(count)));
    copies = copies.subspan(count);
  }
  return {};
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
  if (step.drafts != 0 && step.drafts == speculator_.unread_round())
    HEARTH_TRY(speculator_.collect());
  step.drafts_end = speculator_.read_at(step.drafts);
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

Status StepLoop::rest() {
  if (speculator_.unread_round() == 0) return {};
  HEARTH_TRY(speculator_.collect());
  last_left_seconds_ = links_.publisher.seconds_at(links_.time.now());
  return {};
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
    if (member.samples) deliver_member(*request, member, step.record, outcome, now);
  }
  return speculator_.propose(continuing_);
}

// Each kind of request makes something else of what was sampled for it.
void StepLoop::deliver_member(ActiveRequest& request, const SampledMember& member,
                              StepRecord& record, const StepOutcome& outcome,
                              EngineClock::time_point now) {
  if (!request.request().generate) {
    links_.requests.end(member.request, FinishReason::kLength);
  } else if (request.beams() != nullptr) {
    take_beam(request, member, outcome, now);
  } else if (request.contrastive() != nullptr) {
    accepted_candidates_ = 0;
    if (!take_candidates(request, member, outcome, now)) --record.sampled_tokens;
    record_accepted(record, member, accepted_candidates_);
  } else if (request.takes_back()) {
    // This step was planned before the host knew that its token would have to go.
    links_.scheduler.token(member.request, outcome.sampled[member.first_row].id);
    take_back(request);
  } else if (deliver_tokens(request, member, record, outcome, now)) {
    prepare_next(request, member);
  }
}

// The sampled token, and the accepted proposals before it.
bool StepLoop::deliver_tokens(ActiveRequest& request, const SampledMember& member,
                              StepRecord& record, const StepOutcome& outcome,
                              EngineClock::time_point now) {
  if (!member.awaits_host) {
    const TokenId id = outcome.sampled[member.first_row].id;
    links_.scheduler.token(member.request, id);
    return deliver_row(request, outcome, member.first_row, id, now);
  }
  const bool continues = judge(request, member, outcome, now);
  record.sampled_tokens += static_cast<uint32_t>(judgement_.path.size());
  record_accepted(record, member, static_cast<uint32_t>(judgement_.path.size()));
  return continues;
}

// What a request that continues needs before its next step.
void StepLoop::prepare_next(ActiveRequest& request, const SampledMember& member) {
  if (request.constraint() != nullptr)
    constrain(request, static_cast<uint32_t>(judgement_.path.size()) + 1);
  else if (request.speculation() != nullptr)
    continuing_.push_back(&request);
  if (request.takes_back())
    take_back(request);
  else if (request.slot_has_bans() && member.awaits_host)
    settle_bans(request);
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
  // With earlier steps, and with the drafts that this one verifies.
  const double busy_until = links_.publisher.seconds_at(std::max(last_end_, step.drafts_end));
  record.run_seconds = done - std::max(record.submit_seconds, busy_until);
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
  links_.scheduler.took(step.load, done - std::max(record.begin_seconds, busy_until));
  last_end_ = now;
  links_.requests.report(record);
  links_.publisher.show_counts(links_.scheduler.counts());
  links_.publisher.publish(record, links_.scheduler.totals());
  last_left_seconds_ = links_.publisher.seconds_at(links_.time.now());
}

}  // namespace hearth
