// Beam search in the step loop: each member of a search samples its beam's most probable tokens;
// when all have, the search decides how its members continue.
#include <span>
#include <utility>

#include "engine/beam_group.h"
#include "engine/sampling/sampler.h"
#include "engine/step_loop.h"

namespace hearth {

void StepLoop::take_beam(ActiveRequest& request, const SampledMember& member,
                         const StepOutcome& outcome, EngineClock::time_point now) {
  const std::shared_ptr<BeamGroup> beams = request.beams();  // the request may end
  const TokenLedger& ledger = *links_.scheduler.ledger(request.id());
  if (auto fault = sampling_fault(outcome.sampled[member.first_row], ledger.committed()))
    return links_.requests.end(request.id(), FinishReason::kError, std::move(*fault));
  links_.publisher.generated_token();
  const auto top = outcome.top.subspan(size_t{member.first_row} * params::kMaxTopLogprobs,
                                       request.reported_tokens());
  if (!beams->take(request.id(), top)) return;
  if (!beams->advance()) return deliver_beams(*beams, now);
  for (const BeamGroup::Fork& fork : beams->forks()) {
    links_.scheduler.fork(fork.member, fork.parent);
    if (Constraint* constraint = links_.requests.at(fork.member).constraint().get())
      constraint->fork_from(*links_.requests.at(fork.parent).constraint());
  }
  for (const BeamGroup::Next& next : beams->tokens()) {
    const std::shared_ptr<Constraint>& constraint = links_.requests.at(next.member).constraint();
    if (constraint == nullptr) {
      links_.scheduler.token(next.member, next.token);
      continue;
    }
    // With a grammar, resume() reports the token.
    constraint->take(std::span(&next.token, 1));
    masks_.post(next.member, constraint);
  }
}

// The search has ended: each request gets its text, and ends.
void StepLoop::deliver_beams(BeamGroup& beams, EngineClock::time_point now) {
  beams.end(FinishReason::kStop, {});
  for (uint32_t i = 0; i < beams.size(); ++i) {
    ActiveRequest* request = links_.requests.find(beams.member(i));
    if (request == nullptr) continue;
    FinishReason reason = FinishReason::kStop;
    if (beams.has_text(request->id())) {
      request->set_score(beams.score(request->id()));
      for (GeneratedToken& token : beams.text(request->id())) {
        reason = request->accept(std::move(token), now);
        if (!request->held()) links_.publisher.delivered_token(*request);
      }
    }
    links_.requests.end(beams.member(i), reason);
  }
}

}  // namespace hearth
