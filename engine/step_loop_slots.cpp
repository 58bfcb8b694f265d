// Slots in the step loop: what a request that is admitted brings to its slot. Sampling finds the
// history of its tokens and its logit biases there.
#include <algorithm>
#include <span>
#include <vector>

#include "engine/sampling/penalties.h"
#include "engine/step_loop.h"
#include "params/sampling.h"

namespace hearth {
namespace {

std::vector<params::TokenBias> device_biases(std::span<const LogitBias> biases) {
  std::vector<params::TokenBias> entries;
  entries.reserve(biases.size());
  for (const LogitBias& bias : biases) entries.push_back({.token = bias.token, .bias = bias.bias});
  return entries;
}

}  // namespace

// Admits the requests that the plan admits, and fills their slots.
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

void StepLoop::count_prefix_hits(const BatchPlan& plan) {
  for (const BatchPlan::PrefixHit& hit : plan.prefix_hits)
    // After a preemption a request finds its own blocks; those are not counted as cached.
    if (ActiveRequest& request = links_.requests.at(hit.request); !request.admitted_before())
      // A cached block may continue with tokens that the request's grammar forces.
      request.add_cached_tokens(std::min(hit.tokens, request.prompt_tokens()));
}

// Writes the token history and the logit biases of a newly admitted request into its slot, where
// sampling finds them.
Status StepLoop::write_slot(uint32_t slot, ActiveRequest& request) {
  request.slot_written();
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

// Writes what sampling finds in the slot of a running request; others get it at admission.
void StepLoop::rewrite_slot(ActiveRequest& request) {
  const SequenceView sequence = *links_.scheduler.sequence(request.id());
  if (sequence.state != SequenceState::kRunning) return;
  request.all_counted();
  if (const Status status = write_slot(sequence.slot, request); !status.ok())
    links_.requests.end(request.id(), FinishReason::kError, status.error().message);
}

}  // namespace hearth
