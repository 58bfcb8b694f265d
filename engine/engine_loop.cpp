// The engine thread. Each round plans and submits a step, then waits for the previous one, so that
// the next step is being prepared while the GPU runs.
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
      may_begin = may_begin_step();
    }
    handle_messages();
    end_expired();
    const bool began = may_begin && begin_step();
    if (steps_in_flight_ == StepExecutor::kStepsInFlight || (!began && steps_in_flight_ > 0))
      end_step();
    else if (!began)
      wait_for_work();
  }
  while (steps_in_flight_ > 0) end_step();
  take_and_handle_messages();
  end_everything(FinishReason::kCancelled, "the engine was shut down");
}

// Moves the callers' messages into lists of the engine thread. REQUIRES: mutex_ is held.
void Engine::take_messages() {
  std::swap(incoming_, new_requests_);
  std::swap(ending_, cancelled_);
  std::swap(running_tasks_, tasks_);
}

void Engine::handle_messages() {
  for (std::unique_ptr<ActiveRequest>& request : incoming_) accept_new(std::move(request));
  incoming_.clear();
  for (const RequestId id : ending_) end_request(id, FinishReason::kCancelled);
  ending_.clear();
  for (const std::function<void()>& task : running_tasks_) task();
  running_tasks_.clear();
}

void Engine::take_and_handle_messages() {
  {
    const std::lock_guard lock(mutex_);
    take_messages();
  }
  handle_messages();
}

// Whether a step may begin now, with regard to pausing, single steps and slow motion. Uses up a
// single step. REQUIRES: mutex_ is held.
bool Engine::may_begin_step() {
  if (!control_.paused) return clock_now() >= next_begin();
  if (control_.single_steps == 0) return false;
  --control_.single_steps;
  return true;
}

// When the next step may begin in slow motion. REQUIRES: mutex_ is held.
EngineClock::time_point Engine::next_begin() const {
  if (control_.pace == 0) return last_begin_;
  return last_begin_ + std::chrono::duration_cast<EngineClock::duration>(
                           std::chrono::duration<double>(1.0 / control_.pace));
}

// Sleeps until there is a message. If there are requests but no step may begin, the engine is
// paused or in slow motion; it then wakes up regularly, because time limits may expire and streams
// may be released.
void Engine::wait_for_work() {
  show_counts(scheduler_.counts());  // requests may have come or ended since the last step
  constexpr auto kLongestSleep = std::chrono::milliseconds(5);
  std::unique_lock lock(mutex_);
  const auto called = [&] {
    return control_.closing || !new_requests_.empty() || !cancelled_.empty() || !tasks_.empty() ||
           (control_.paused && control_.single_steps > 0);
  };
  if (active_.empty()) return wake_.wait(lock, called);
  EngineClock::duration longest = kLongestSleep;
  if (!control_.paused) longest = std::min(longest, next_begin() - clock_now());
  wake_.wait_for(lock, longest,
                 [&] { return called() || (!control_.paused && clock_now() >= next_begin()); });
}

void Engine::accept_new(std::unique_ptr<ActiveRequest> request) {
  const GenerationRequest& asked = request->request();
  NewRequest added{.prompt = asked.prompt,
                   .max_new_tokens = request->max_new_tokens(),
                   .priority = asked.priority,
                   .cache_salt = asked.cache_salt,
                   .fork = asked.fork};
  if (asked.forks_first)
    added.fork = ForkPoint{.parent = fork_parent_, .position = request->prompt_tokens()};
  else
    fork_parent_ = request->id();
  const RequestId id = request->id();
  arrived_.push_back({.request = id,
                      .seconds = seconds_between(created_at_, request->submitted()),
                      .prompt_tokens = request->prompt_tokens(),
                      .max_tokens = request->prompt_tokens() + request->max_new_tokens()});
  ActiveRequest& active = *active_.emplace(id, std::move(request)).first->second;
  const AddResult result = scheduler_.add(id, added);
  // submit() has checked this, but the limits may have changed since.
  if (!result.accepted()) end_request(active.id(), FinishReason::kError, result.message);
}

void Engine::end_expired() {
  const EngineClock::time_point now = clock_now();
  for (const auto& [id, request] : active_)
    if (request->expired(now) || request->abandoned()) ending_.push_back(id);
  for (const RequestId id : ending_) {
    if (active_.at(id)->abandoned())
      end_request(id, FinishReason::kCancelled);
    else
      end_request(id, FinishReason::kTimeLimit, "the request's time limit has passed");
  }
  ending_.clear();
}

bool Engine::begin_step() {
  const EngineClock::time_point begin = clock_now();
  const BatchPlan& plan = scheduler_.plan();
  if (options_.check_integrity) check_integrity();
  if (plan.empty()) return false;

  StepInFlight& step = steps_[(first_step_ + steps_in_flight_) % StepExecutor::kStepsInFlight];
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
  ++steps_in_flight_;
  const EngineClock::time_point submitted = clock_now();
  describe_plan(plan, step.record);
  step.record.begin_seconds = seconds_between(created_at_, begin);
  step.record.plan_seconds = seconds_between(begin, submitted);
  step.record.submit_seconds = seconds_between(created_at_, submitted);
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

// Writes the token history and logit biases of newly admitted requests into their slots, where
// sampling finds them.
Status Engine::prepare_slots(const BatchPlan& plan, EngineClock::time_point now) {
  for (const BatchPlan::PrefixHit& hit : plan.prefix_hits)
    // After a preemption a request finds its own blocks; those are not counted as cached.
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

void Engine::make_batch(const BatchPlan& plan, StepInFlight& step) {
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
  // A padded decode is a rectangle: its padding rows go through attention like the longest member's
  // row, and through the logits, which are most of the work in a small model. Nothing is sampled
  // from them.
  const params::StepSequence longest = *std::ranges::max_element(
      batch_.sequences, {},
      [](const params::StepSequence& member) { return member.first_position; });
  for (uint32_t i = 0; i < plan.padding_tokens; ++i) {
    batch_.logit_rows.push_back(batch_.rows());
    batch_.sampling.push_back({});
    batch_.add_padding(longest);
  }
}

void Engine::describe_plan(const BatchPlan& plan, StepRecord& record) const {
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
  StepInFlight& step = steps_[first_step_];
  const EngineClock::time_point waiting = clock_now();
  const Result<StepOutcome> outcome = executor_.wait(step.ticket);
  const EngineClock::time_point now = clock_now();
  first_step_ = (first_step_ + 1) % StepExecutor::kStepsInFlight;
  --steps_in_flight_;
  if (!outcome.ok()) return fail(outcome.error());

  for (size_t i = 0; i < step.sampled.size(); ++i) {
    const auto place = active_.find(step.sampled[i]);
    // The request ended while this step was in flight.
    if (place == active_.end()) continue;
    ActiveRequest& request = *place->second;
    const params::SamplingResult& sampled = outcome->sampled[i];
    if (auto fault = sampling_fault(sampled, request.tokens().size())) {
      end_request(request.id(), FinishReason::kError, std::move(*fault));
      continue;
    }
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
  const double done = seconds_between(created_at_, now);
  record.run_seconds =
      done - std::max(record.submit_seconds, seconds_between(created_at_, last_end_));
  record.wait_seconds = seconds_between(waiting, now);
  record.end_seconds = done;
  last_end_ = now;
  publish(record);
}

void Engine::publish(StepRecord& record) {
  std::swap(record.finished, finished_);
  finished_.clear();
  std::swap(record.cancelled, cancelled_since_record_);
  cancelled_since_record_.clear();
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
  if (reason == FinishReason::kCancelled) cancelled_since_record_.push_back(id);
  request->stop_clock(clock_now());
  // Counted before the stream ends, so that a reader who sees the end also sees it in the metrics.
  count_finish(*request, reason);
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

void Engine::count_finish(const ActiveRequest& request, FinishReason reason) {
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

// A step could not be submitted: its members end with the error, all others continue. If it failed
// before its preparations were complete, requests whose blocks were to be moved or whose slots were
// to be set end, too.
void Engine::fail_step(const BatchPlan& plan, bool prepared, const Error& error) {
  if (error.kind == ErrorKind::kDeviceLost) return fail(error);
  failed_members_.clear();
  for (const BatchMember& member : plan.members) failed_members_.push_back(member.request);
  if (!prepared)
    for (const std::vector<RequestId>* list : {&plan.admitted, &plan.preempted_swap})
      failed_members_.insert(failed_members_.end(), list->begin(), list->end());
  for (const RequestId id : failed_members_) end_request(id, FinishReason::kError, error.message);
  // The scheduler assumes that the step has filled its blocks, so cached prefixes may be wrong.
  scheduler_.forget_prefixes();
}

// The device is lost: ends every request and refuses new ones.
void Engine::fail(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = error.message;
  }
  steps_in_flight_ = 0;
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
