// Judging in the step loop: what the host makes of a step before the request's next one is planned.
// It commits the proposals that the device has accepted, and takes back the tokens of a banned
// string.
#include <span>

#include "engine/step_loop.h"

namespace hearth {

// Commits the accepted proposals, and the token after them.
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
  accepted_.clear();
  for (uint32_t i = 0; i <= member.proposed; ++i) {
    sampled_.push_back(outcome.sampled[member.first_row + i].id);
    accepted_.push_back(outcome.sampled[member.first_row + i].accepted);
  }
  // A grammar allows only what was sampled.
  if (request.constraint() == nullptr)
    speculator_.settle(id, ledger.tokens().subspan(committed), sampled_, accepted_);
  follow_accepted(accepted_, judgement_);
  const auto accepted = static_cast<uint32_t>(judgement_.path.size());
  if (member.proposed > 0) links_.publisher.judged(member.proposed, accepted);
  request.count_judged(member.proposed, accepted);
  if (Speculation* speculation = request.speculation()) {
    if (speculation->from_others()) links_.publisher.judged_shared(member.proposed, accepted);
    speculation->judged(member.proposed, accepted, sampled_);
  }
  if (ledger.parents().empty()) {
    // An accepted draft may still be unread: it is the token that was sampled before it.
    links_.scheduler.learn_proposals(id, std::span(sampled_).first(accepted));
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

}  // namespace hearth
