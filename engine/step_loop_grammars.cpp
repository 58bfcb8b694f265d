// Requests with a grammar in the step loop: when a token is known, a worker finds out what may
// follow it, and the request continues with its mask and with the tokens that have to follow.
#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "engine/beam_group.h"
#include "engine/step_loop.h"

namespace hearth {
namespace {

// How long the next step may wait for masks. A member that misses the step loses the time of a
// whole one, and a step with fewer members takes hardly less time.
std::chrono::nanoseconds mask_patience(double step_seconds) {
  constexpr double kShare = 0.25, kShortest = 100e-6, kLongest = 5e-3;  // seconds
  const double seconds = std::clamp(kShare * step_seconds, kShortest, kLongest);
  return std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

}  // namespace

// Lets a worker find out what may follow the request's newest tokens.
void StepLoop::constrain(ActiveRequest& request, uint32_t new_tokens) {
  std::span<const TokenId> guesses;
  if (request.speculation() != nullptr) guesses = request.speculation()->guess_chain();
  request.constraint()->take(std::span(request.tokens()).last(new_tokens), guesses);
  masks_.post(request.id(), request.constraint());
}

Status StepLoop::resume_constrained() {
  if (!masks_.busy()) return {};
  // New requests may join in every step, so that none waits for long.
  constexpr uint32_t kMostHeld = 2;
  if (constrained_in_flight() && ++held_ <= kMostHeld) return {};
  held_ = 0;
  const EngineClock::time_point waiting = links_.time.now();
  masks_.wait(mask_patience(last_run_seconds_), idle());
  masks_.collect(advanced_);
  const EngineClock::time_point now = links_.time.now();
  mask_seconds_ += std::chrono::duration<double>(now - waiting).count();
  for (const RequestId id : advanced_)
    if (ActiveRequest* request = links_.requests.find(id)) HEARTH_TRY(resume(*request, now));
  return {};
}

bool StepLoop::waits_for_masks(const StepInFlight& newest) const {
  const auto constrained = std::ranges::count_if(newest.sampled, &SampledMember::constrained);
  return constrained > 0 &&
         mask_pace_.waits(static_cast<size_t>(constrained), newest.sampled.size());
}

bool StepLoop::constrained_in_flight() const {
  for (size_t i = 0; i < in_flight_; ++i)
    if (std::ranges::any_of(steps_[(oldest_ + i) % steps_.size()].sampled,
                            &SampledMember::constrained))
      return true;
  return false;
}

// The request's masks are ready: it may be planned again, after the tokens that have to follow.
Status StepLoop::resume(ActiveRequest& request, EngineClock::time_point now) {
  const RequestId id = request.id();
  const Constraint& constraint = *request.constraint();
  if (constraint.fault()) {
    request.set_grammar_failed();
    links_.requests.end(id, FinishReason::kError, *constraint.fault());
    return {};
  }
  if (const std::shared_ptr<BeamGroup>& beams = request.beams()) {
    // The members of a search continue together.
    if (beams->mask_ready())
      for (const BeamGroup::Next& next : beams->tokens())
        links_.scheduler.token(next.member, next.token);
    return {};
  }
  links_.scheduler.token(id, request.tokens().back());
  const FinishReason reason = deliver_forced(request, now);
  if (reason != FinishReason::kNone) {
    links_.requests.end(id, reason);
    return {};
  }
  links_.scheduler.force(id, constraint.forced());
  links_.scheduler.propose(id, constraint.guesses(), constraint.parents());
  const Status counted = count_forced(request);
  if (counted.ok() || counted.error().kind == ErrorKind::kDeviceLost) return counted;
  links_.requests.end(id, FinishReason::kError, counted.error().message);
  return {};
}

// Delivers the tokens that have to follow.
FinishReason StepLoop::deliver_forced(ActiveRequest& request, EngineClock::time_point now) {
  const Constraint& constraint = *request.constraint();
  FinishReason reason = FinishReason::kNone;
  for (const TokenId id : constraint.forced()) {
    GeneratedToken token{.id = id};
    if (request.request().sampling.top_logprobs > 0) token.top.push_back({.id = id});
    reason = accept(request, std::move(token), now);
    links_.publisher.forced(1);
    if (reason != FinishReason::kNone) return reason;
  }
  return constraint.complete() ? FinishReason::kStop : FinishReason::kNone;
}

// Counts forced tokens in the history of the request's slot. They may be more than a step has room
// to commit, so the history is written anew; a request without a slot gets it with the slot.
Status StepLoop::count_forced(ActiveRequest& request) {
  if (request.constraint()->forced().empty() || !request.uses_history()) return {};
  const SequenceView sequence = *links_.scheduler.sequence(request.id());
  if (sequence.state != SequenceState::kRunning) return {};
  HEARTH_TRY(write_slot(sequence.slot, request));
  request.all_counted();
  return {};
}

}  // namespace hearth
