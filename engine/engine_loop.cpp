// The engine thread. Each round plans and submits a step, then waits for the one before: while the
// GPU works on one step the next one is already made.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "engine/engine.h"
#include "engine/sampling/penalties.h"
#include "params/embed.h"

namespace hearth {
namespace {

double seconds_between(EngineClock::time_point from, EngineClock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

template <class T>
void copy_list(const std::vector<T>& from, std::vector<T>& to) {
  to.assign(from.begin(), from.end());
}

}  // namespace

void Engine::loop() {
  while (true) {
    bool may_begin = false;
    {
      const std::lock_guard lock(mutex_);
      if (control_.closing) break;
      take_messages();
      may_begin = take_turn();
    }
    handle_messages();
    end_expired();
    const bool began = may_begin && begin_step();
    if (steps_under_way_ == StepExecutor::kStepsUnderWay || (!began && steps_under_way_ > 0))
      end_step();
    else if (!began)
      wait_for_work();
  }
  while (steps_under_way_ > 0) end_step();
  take_and_handle_messages();
  end_everything(FinishReason::kCancelled, "the engine was shut down");
}

// Moves what callers left into lists of the engine thread's own. REQUIRES: mutex_ is held.
void Engine::take_messages() {
  std::swap(incoming_, new_requests_);
  std::swap(leaving_, cancelled_);
  std::swap(running_errands_, errands_);
}

void Engine::handle_messages() {
  for (std::unique_ptr<ActiveRequest>& request : incoming_) accept_new(std::move(request));
  incoming_.clear();
  for (const RequestId id : leaving_) end_request(id, FinishReason::kCancelled);
  leaving_.clear();
  for (const std::function<void()>& errand : running_errands_) errand();
  running_errands_.clear();
}

void Engine::take_and_handle_messages() {
  {
    const std::lock_guard lock(mutex_);
    take_messages();
  }
  handle_messages();
}

// Whether a step may begin now: not while paused, and in slow motion not too early. REQUIRES:
// mutex_ is held.
bool Engine::take_turn() {
  if (!control_.paused) return EngineClock::now() >= next_turn();
  if (control_.single_steps == 0) return false;
  --control_.single_steps;
  return true;
}

// When slow motion lets the next step begin. REQUIRES: mutex_ is held.
EngineClock::time_point Engine::next_turn() const {
  if (control_.pace == 0) return last_begin_;
  return last_begin_ + std::chrono::duration_cast<EngineClock::duration>(
                           std::chrono::duration<double>(1.0 / control_.pace));
}

// Sleeps until a caller wants something. With requests there and nothing to do, the engine is
// paused or in slow motion; a time limit may pass meanwhile, or a stream be let go of.
void Engine::wait_for_work() {
  show_counts(scheduler_.counts());  // of what changed since the last step
  constexpr auto kLongestSleep = std::chrono::milliseconds(5);
  std::unique_lock lock(mutex_);
  const auto called = [&] {
    return control_.closing || !new_requests_.empty() || !cancelled_.empty() || !errands_.empty() ||
           (control_.paused && control_.single_steps > 0);
  };
  if (active_.empty()) return wake_.wait(lock, called);
  EngineClock::time_point until = EngineClock::now() + kLongestSleep;
  if (!control_.paused) until = std::min(until, next_turn());
  wake_.wait_until(lock, until, [&] {
    return called() || (!control_.paused && EngineClock::now() >= next_turn());
  });
}

void Engine::accept_new(std::unique_ptr<ActiveRequest> request) {
  const GenerationRequest& asked = request->request();
  NewRequest added{.prompt = asked.prompt,
                   .max_new_tokens = request->max_new_tokens(),
                   .priority = asked.priority,
                   .cache_salt = asked.cache_salt,
                   .fork = asked.fork};
  if (asked.forks_first)
    added.fork = ForkPoint{.parent = first_of_batch_, .position = request->prompt_tokens()};
  else
    first_of_batch_ = request->id();
  const RequestId id = request->id();
  arrived_.push_back({.request = id,
                      .seconds = seconds_between(began_, request->submitted()),
                      .prompt_tokens = request->prompt_tokens(),
                      .max_tokens = request->prompt_tokens() + request->max_new_tokens()});
  ActiveRequest& active = *active_.emplace(id, std::move(request)).first->second;
  const AddResult result = scheduler_.add(id, added);
  // submit() has checked, but limits may have changed since.
  if (!result.accepted()) end_request(active.id(), FinishReason::kError, result.message);
}

void Engine::end_expired() {
  const EngineClock::time_point now = EngineClock::now();
  for (const auto& [id, request] : active_)
    if (request->expired(now) || request->abandoned()) leaving_.push_back(id);
  for (const RequestId id : leaving_) {
    if (active_.at(id)->abandoned())
      end_request(id, FinishReason::kCancelled);
    else
      end_request(id, FinishReason::kTimeLimit, "the request's time limit has passed");
  }
  leaving_.clear();
}

bool Engine::begin_step() {
  const EngineClock::time_point begin = EngineClock::now();
  const BatchPlan& plan = scheduler_.plan();
  if (options_.check_integrity) check_integrity();
  if (plan.empty()) return false;

  UnderWay& step = steps_[(first_step_ + steps_under_way_) % StepExecutor::kStepsUnderWay];
  bool prepared = false;
  const auto submit = [&]() -> Status {
    HEARTH_TRY(move_blocks(plan));
    HEARTH_TRY(prepare_slots(plan, begin));
    prepared = true;
    make_batch(plan, step);
    HEARTH_ASSIGN(step.ticket, executor_.submit(batch_));
    return {};
  };
  const Status status = submit();
  if (!status.ok()) {
    fail_step(plan, prepared, status.error());
    return true;
  }
  ++steps_under_way_;
  const EngineClock::time_point submitted = EngineClock::now();
  note_plan(plan, step.record);
  step.record.begin_seconds = seconds_between(began_, begin);
  step.record.plan_seconds = seconds_between(begin, submitted);
  step.record.submit_seconds = seconds_between(began_, submitted);
  last_begin_ = begin;
  show_counts(scheduler_.counts());
  return true;
}

Status Engine::move_blocks(const BatchPlan& plan) {
  if (!plan.swap_out.empty()) HEARTH_TRY(executor_.swap_out(plan.swap_out));
  if (!plan.swap_in.empty()) HEARTH_TRY(executor_.swap_in(plan.swap_in));
  if (!plan.copies.empty()) HEARTH_TRY(executor_.fork_blocks(plan.copies));
  return {};
}

// What sampling looks up in a slot, for those that just got one.
Status Engine::prepare_slots(const BatchPlan& plan, EngineClock::time_point now) {
  for (const BatchPlan::PrefixHit& hit : plan.prefix_hits)
    // Who comes back after a preemption finds what was its own.
    if (ActiveRequest& request = *active_.at(hit.request); !request.admitted_before())
      request.add_cached_tokens(hit.tokens);
  for (const RequestId id : plan.admitted) {
    ActiveRequest& request = *active_.at(id);
    if (!request.admitted_before()) {
      request.admit(now);
      metrics_.queue_seconds.add(request.times().admitted);
      const std::lock_guard lock(mutex_);
      --queued_;
    }
    const uint32_t slot = scheduler_.sequence(id)->slot;
    if (request.uses_history()) {
      const std::span<const TokenId> tokens(request.tokens());
      HEARTH_TRY(executor_.set_history(
          slot, count_tokens(
                    tokens.first(request.prompt_tokens()), tokens.subspan(request.prompt_tokens()),
                    request.request().sampling.repetition_penalty, StepExecutor::kHistoryTokens)));
    }
    if (!request.request().biases.empty())
      HEARTH_TRY(executor_.set_biases(slot, request.request().biases));
  }
  return {};
}

void Engine::make_batch(const BatchPlan& plan, UnderWay& step) {
  batch_.clear();
  step.sampled.clear();
  for (const BatchMember& member : plan.members) {
    const ActiveRequest& request = *active_.at(member.request);
    const uint32_t known = member.tokens - (member.input_on_gpu ? 1 : 0);
    const auto row = static_cast<uint32_t>(batch_.ids.size());
    batch_.add_sequence(
        member.first_position,
        std::span<const TokenId>(request.tokens()).subspan(member.first_position, known),
        std::span<const BlockId>(plan.block_ids).subspan(member.first_block, member.blocks));
    if (member.input_on_gpu) {
      batch_.ids.push_back(params::kSampledId | member.slot);
      ++batch_.sequences.back().rows;
    }
    if (!member.samples) continue;
    batch_.logit_rows.push_back(row + member.tokens - 1);
    batch_.sampling.push_back(
        request.sampling_row(member.slot, member.first_position + member.tokens));
    step.sampled.push_back(member.request);
  }
  if (batch_.longest() > 1 || plan.padding_tokens == 0) {
    batch_.padding_rows = plan.padding_tokens;
    return;
  }
  // A padded decode is a rectangle: all its rows go through attention as the longest member's does,
  // and to logits, which are most of the work in a small model. Nothing is sampled from those of
  // nobody.
  const params::StepSequence longest = *std::ranges::max_element(
      batch_.sequences, {},
      [](const params::StepSequence& member) { return member.first_position; });
  for (uint32_t i = 0; i < plan.padding_tokens; ++i) {
    batch_.logit_rows.push_back(batch_.rows());
    batch_.sampling.push_back({});
    batch_.add_padding(longest);
  }
}

void Engine::note_plan(const BatchPlan& plan, StepRecord& record) const {
  record.step = plan.step;
  record.members.clear();
  record.tokens = plan.tokens();
  record.padding_tokens = plan.padding_tokens;
  record.sampled_tokens = 0;
  for (const BatchMember& member : plan.members) {
    record.members.push_back({.request = member.request,
                              .slot = member.slot,
                              .phase = member.decodes ? StepPhase::kDecode : StepPhase::kPrompt,
                              .first_position = member.first_position,
                              .tokens = member.tokens,
                              .samples = member.samples});
    if (member.samples) ++record.sampled_tokens;
  }
  copy_list(plan.admitted, record.admitted);
  copy_list(plan.preempted_recompute, record.preempted_recompute);
  copy_list(plan.preempted_swap, record.preempted_swap);
  copy_list(plan.prefix_hits, record.prefix_hits);
  record.blocks_swapped_out = static_cast<uint32_t>(plan.swap_out.size());
  record.blocks_swapped_in = static_cast<uint32_t>(plan.swap_in.size());
  record.blocks_copied = static_cast<uint32_t>(plan.copies.size());
  record.counts = scheduler_.counts();
}

void Engine::end_step() {
  UnderWay& step = steps_[first_step_];
  const EngineClock::time_point waiting = EngineClock::now();
  const Result<StepOutcome> outcome = executor_.wait(step.ticket);
  const EngineClock::time_point now = EngineClock::now();
  first_step_ = (first_step_ + 1) % StepExecutor::kStepsUnderWay;
  --steps_under_way_;
  if (!outcome.ok()) return fail(outcome.error());

  for (size_t i = 0; i < step.sampled.size(); ++i) {
    const auto place = active_.find(step.sampled[i]);
    // It ended while this step was under way.
    if (place == active_.end()) continue;
    ActiveRequest& request = *place->second;
    const params::SamplingResult& sampled = outcome->sampled[i];
    scheduler_.token(request.id(), sampled.id);
    std::span<const params::TokenLogprob> top;
    if (!outcome->top.empty())
      top = outcome->top.subspan(i * params::kMaxTopLogprobs,
                                 request.request().sampling.top_logprobs);
    const FinishReason reason = request.accept(sampled, top, now);
    metrics_.generated_tokens.add();
    if (request.generated_tokens() == 1)
      metrics_.time_to_first_token_seconds.add(request.times().first_token);
    else if (request.token_gap())
      metrics_.time_between_tokens_seconds.add(*request.token_gap());
    if (reason != FinishReason::kNone) end_request(request.id(), reason);
  }

  StepRecord& record = step.record;
  const double done = seconds_between(began_, now);
  record.run_seconds = done - std::max(record.submit_seconds, seconds_between(began_, last_end_));
  record.wait_seconds = seconds_between(waiting, now);
  record.end_seconds = done;
  last_end_ = now;
  publish(record);
}

void Engine::publish(StepRecord& record) {
  std::swap(record.finished, finished_);
  finished_.clear();
  std::swap(record.cancelled, cancelled_ones_);
  cancelled_ones_.clear();
  std::swap(record.arrived, arrived_);
  arrived_.clear();
  metrics_.steps.add();
  metrics_.padding_tokens.add(record.padding_tokens);
  for (const StepMember& member : record.members)
    if (member.phase == StepPhase::kPrompt) metrics_.prompt_tokens.add(member.tokens);
  const SchedulerTotals& totals = scheduler_.totals();
  metrics_.prefix_query_tokens.set(totals.prefix_query_tokens);
  metrics_.prefix_hit_tokens.set(totals.prefix_hit_tokens);
  metrics_.preemptions_recompute.set(totals.preemptions_recompute);
  metrics_.preemptions_swap.set(totals.preemptions_swap);
  metrics_.blocks_copied.add(record.blocks_copied);
  metrics_.blocks_swapped_out.add(record.blocks_swapped_out);
  metrics_.blocks_swapped_in.add(record.blocks_swapped_in);
  metrics_.tokens_per_step.add(record.tokens);
  metrics_.step_seconds.add(record.run_seconds);
  show_counts(scheduler_.counts());
  records_.publish([&](StepRecord& published) { published = record; });
}

void Engine::show_counts(const SchedulerCounts& counts) {
  const std::lock_guard lock(mutex_);
  metrics_.running.set(counts.running);
  metrics_.waiting.set(counts.waiting + new_requests_.size());
  metrics_.swapped.set(counts.swapped);
  metrics_.kv_blocks_used.set(counts.blocks_used);
  metrics_.kv_blocks_cached.set(counts.blocks_cached);
  metrics_.kv_blocks_free.set(counts.blocks_free);
}

void Engine::read_gauges(SchedulerCounts& counts) const {
  const auto read = [](const auto& gauge) { return static_cast<uint32_t>(gauge.value()); };
  counts.running = read(metrics_.running);
  counts.waiting = read(metrics_.waiting);
  counts.swapped = read(metrics_.swapped);
  counts.blocks_used = read(metrics_.kv_blocks_used);
  counts.blocks_cached = read(metrics_.kv_blocks_cached);
  counts.blocks_free = read(metrics_.kv_blocks_free);
}

void Engine::end_request(RequestId id, FinishReason reason, std::string message) {
  const auto place = active_.find(id);
  if (place == active_.end()) return;
  const std::unique_ptr<ActiveRequest> request = std::move(place->second);
  active_.erase(place);
  scheduler_.finish(id);
  finished_.push_back(id);
  if (reason == FinishReason::kCancelled) cancelled_ones_.push_back(id);
  request->stop_clock(EngineClock::now());
  // Who sees the end of the stream sees it counted, too.
  count_end(*request, reason);
  show_counts(scheduler_.counts());
  if (!request->admitted_before()) {
    const std::lock_guard lock(mutex_);
    --queued_;
  }
  request->finish(reason, std::move(message));
  const std::lock_guard lock(mutex_);
  --unfinished_;
  if (unfinished_ == 0) changed_.notify_all();
}

void Engine::count_end(const ActiveRequest& request, FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      break;
    case FinishReason::kStop:
      metrics_.finished_stop.add();
      break;
    case FinishReason::kLength:
      metrics_.finished_length.add();
      break;
    case FinishReason::kCancelled:
      metrics_.finished_cancelled.add();
      break;
    case FinishReason::kTimeLimit:
      metrics_.finished_time_limit.add();
      break;
    case FinishReason::kError:
      metrics_.finished_error.add();
      break;
  }
  const GenerationTimes& times = request.times();
  metrics_.end_to_end_seconds.add(times.finished);
  if (request.generated_tokens() > 1)
    metrics_.time_per_output_token_seconds.add((times.last_token - times.first_token) /
                                               (request.generated_tokens() - 1));
}

// A step that could not be begun: its members end with the reason, everyone else goes on. Without
// its preparations those end, too, whose blocks were not moved or whose slots are not set.
void Engine::fail_step(const BatchPlan& plan, bool prepared, const Error& error) {
  if (error.kind == ErrorKind::kDeviceLost) return fail(error);
  failed_members_.clear();
  for (const BatchMember& member : plan.members) failed_members_.push_back(member.request);
  if (!prepared)
    for (const std::vector<RequestId>* list : {&plan.admitted, &plan.preempted_swap})
      failed_members_.insert(failed_members_.end(), list->begin(), list->end());
  for (const RequestId id : failed_members_) end_request(id, FinishReason::kError, error.message);
  // The scheduler believes that the step has filled its blocks.
  scheduler_.forget_prefixes();
}

// Nothing more can be computed.
void Engine::fail(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = error.message;
  }
  steps_under_way_ = 0;
  take_and_handle_messages();
  end_everything(FinishReason::kError, error.message);
}

void Engine::end_everything(FinishReason reason, const std::string& message) {
  while (!active_.empty()) end_request(active_.begin()->first, reason, message);
}

void Engine::check_integrity() const {
  const std::optional<std::string> wrong = scheduler_.check_integrity();
  if (!wrong) return;
  fmt::print(stderr, "hearth: the scheduler is inconsistent: {}\n", *wrong);
  std::abort();
}

}  // namespace hearth
