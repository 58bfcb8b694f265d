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

// The token sampled at a logit row, without text.
GeneratedToken read_row(const StepOutcome& outcome, size_t row, uint32_t top_logprobs) {
  const params::SamplingResult& sampled = outcome.sampled[row];
  GeneratedToken token{.id = sampled.id, .logprob = sampled.logprob};
  if (top_logprobs == 0 || outcome.top.empty()) return token;
  token.top.reserve(top_logprobs);
  for (const params::TokenLogprob& entry :
       outcome.top.subspan(row * params::kMaxTopLogprobs, top_logprobs))
    if (entry.id != params::kNoToken)
      token.top.push_back({.id = entry.id, .logprob = entry.logprob});
  return token;
}

std::vector<params::TokenBias> device_biases(std::span<const LogitBias> biases) {
  std::vector<params::TokenBias> entries;
  entries.reserve(biases.size());
  for (const LogitBias& bias : biases) entries.push_back({.token = bias.token, .bias = bias.bias});
  return entries;
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
    const StepBatch& batch = batches_.build(plan, links_.requests, step.sampled);
    HEARTH_ASSIGN(step.ticket, links_.executor.submit(batch));
    return {};
  };
  if (const Status status = submit(); !status.ok()) {
    HEARTH_TRY(fail_step(plan, prepared, status.error()));
    return true;
  }
  step.ahead = in_flight_ > 0;
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
  return speculator_.holds_back(newest.sampled);
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
    links_.requests.admit(request, held ? sequence.batch : 0, now);
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
  if (!request.request().biases.empty())
    HEARTH_TRY(links_.executor.set_biases(slot, device_biases(request.request().biases)));
  return {};
}

void StepLoop::count_prefix_hits(const BatchPlan& plan) {
  for (const BatchPlan::PrefixHit& hit : plan.prefix_hits)
    // After a preemption a request finds its own blocks; those are not counted as cached.
    if (ActiveRequest& request = links_.requests.at(hit.request); !request.admitted_before())
      request.add_cached_tokens(hit.tokens);
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
  const Status delivered = deliver(step, *outcome, now);
  publish(step, waiting, now);
  return delivered;
}

Status StepLoop::deliver(StepInFlight& step, const StepOutcome& outcome,
                         EngineClock::time_point now) {
  continuing_.clear();
  for (const SampledMember& member : step.sampled) {
    ActiveRequest* request = links_.requests.find(member.request);
    if (request == nullptr) continue;  // it ended while this step was in flight
    bool continues = false;
    if (member.awaits_host) {
      continues = judge(*request, member, outcome, now);
      step.record.sampled_tokens += static_cast<uint32_t>(judgement_.path.size());
    } else {
      const TokenId id = outcome.sampled[member.first_row].id;
      links_.scheduler.token(member.request, id);
      continues = deliver_row(*request, outcome, member.first_row, id, now);
    }
    if (continues) continuing_.push_back(request);
  }
  return speculator_.propose(continuing_);
}

// Delivers the token of a logit row, and ends the request if it was its last, or if there is none.
bool StepLoop::deliver_row(ActiveRequest& request, const StepOutcome& outcome, size_t row,
                           TokenId id, EngineClock::time_point now) {
  if (auto fault = sampling_fault(outcome.sampled[row], request.tokens().size())) {
    links_.requests.end(request.id(), FinishReason::kError, std::move(*fault));
    return false;
  }
  GeneratedToken token = read_row(outcome, row, request.request().sampling.top_logprobs);
  token.id = id;
  if (Speculation* speculation = request.speculation())
    speculation->append(std::span(&token.id, 1));
  const FinishReason reason = request.accept(std::move(token), now);
  links_.publisher.generated_token();
  if (!request.held()) links_.publisher.delivered_token(request);
  if (reason == FinishReason::kNone) return true;
  links_.requests.end(request.id(), reason);
  return false;
}

// Commits the proposals that match what the model sampled, and the token after them.
bool StepLoop::judge(ActiveRequest& request, const SampledMember& member,
                     const StepOutcome& outcome, EngineClock::time_point now) {
  const RequestId id = request.id();
  const TokenLedger& ledger = *links_.scheduler.ledger(id);
  const uint32_t committed = ledger.committed();
  sampled_.clear();
  for (uint32_t i = 0; i <= member.proposed; ++i)
    sampled_.push_back(outcome.sampled[member.first_row + i].id);
  const std::span<const TokenId> proposed = ledger.tokens().subspan(committed);
  speculator_.settle(id, proposed, sampled_);
  judge_proposals(proposed, ledger.parents(), sampled_, judgement_);
  const auto accepted = static_cast<uint32_t>(judgement_.path.size());
  if (member.proposed > 0) links_.publisher.judged(member.proposed, accepted);
  request.count_judged(member.proposed, accepted);
  if (Speculation* speculation = request.speculation())
    speculation->judged(member.proposed, accepted, sampled_);
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
  links_.scheduler.token(id, sampled_[judgement_.next_row]);
  return deliver_row(request, outcome, member.first_row + judgement_.next_row,
                     sampled_[judgement_.next_row], now);
}

void StepLoop::publish(StepInFlight& step, EngineClock::time_point waiting,
                       EngineClock::time_point now) {
  StepRecord& record = step.record;
  const double done = links_.publisher.seconds_at(now);
  record.run_seconds =
      done - std::max(record.submit_seconds, links_.publisher.seconds_at(last_end_));
  record.wait_seconds = std::chrono::duration<double>(now - waiting).count();
  record.end_seconds = done;
  // What it took since the last step, without the time that the loop was not asked to begin it.
  speculator_.took(record,
                   done - links_.publisher.seconds_at(last_end_) -
                       std::max(0.0, record.begin_seconds - last_left_seconds_),
                   step.ahead);
  last_end_ = now;
  links_.requests.report(record);
  links_.publisher.show_counts(links_.scheduler.counts());
  links_.publisher.publish(record, links_.scheduler.totals());
  last_left_seconds_ = links_.publisher.seconds_at(links_.time.now());
}

}  // namespace hearth
