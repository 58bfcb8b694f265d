// Contrastive search in the step loop: a step computes a request's candidates, each with a block of
// its own at the end of the text, and compares their hidden states with those of the text. The
// search takes one: its block becomes the text's, and what is most probable after it are the next
// step's candidates. Its hidden state is copied into the text by that step.
#include <algorithm>
#include <span>
#include <utility>

#include "engine/decoding/contrastive.h"
#include "engine/sampling/sampler.h"
#include "engine/step_loop.h"
#include "params/hidden_rows.h"

namespace hearth {
namespace {

// The most probable tokens that a logit row reports.
std::vector<ContrastiveSearch::Token> probable_tokens(const StepOutcome& outcome, size_t row,
                                                      uint32_t count) {
  std::vector<ContrastiveSearch::Token> tokens;
  for (const params::TokenLogprob& entry :
       outcome.top.subspan(row * params::kMaxTopLogprobs, count))
    if (entry.id != params::kNoToken) tokens.push_back({.id = entry.id, .logprob = entry.logprob});
  return tokens;
}

float largest_similarity(const StepOutcome& outcome, size_t row) {
  return std::ranges::max(
      outcome.similarity.subspan(row * params::kComparisonParts, params::kComparisonParts));
}

}  // namespace

// Makes room for the hidden states that the plan's members keep. A request for which there is none
// ends when the step is done.
void StepLoop::reserve_hidden(const BatchPlan& plan) {
  if (!keeps_hidden_) return;
  for (const BatchMember& member : plan.members) {
    ActiveRequest& request = links_.requests.at(member.request);
    if (request.contrastive() == nullptr || !request.hidden_fault().empty()) continue;
    const Status status = links_.executor.reserve_hidden(
        member.slot, member.first_position + member.tokens + kStagedHidden);
    if (!status.ok())
      request.set_hidden_fault("contrastive search has no memory for hidden states: " +
                               status.error().message);
  }
}

// Judges the candidates that a step has computed. False if that gave no token yet.
bool StepLoop::take_candidates(ActiveRequest& request, const SampledMember& member,
                               const StepOutcome& outcome, EngineClock::time_point now) {
  const RequestId id = request.id();
  ContrastiveSearch& search = *request.contrastive();
  const uint32_t committed = links_.scheduler.ledger(id)->committed();
  if (!request.hidden_fault().empty()) {
    links_.requests.end(id, FinishReason::kError, request.hidden_fault());
    return false;
  }
  const uint32_t rows = std::max(member.proposed, 1u);
  for (uint32_t row = member.first_row; row < member.first_row + rows; ++row)
    if (auto fault = sampling_fault(outcome.sampled[row], committed)) {
      links_.requests.end(id, FinishReason::kError, std::move(*fault));
      return false;
    }

  if (member.proposed == 0) {
    if (search.needs_candidates())
      search.set_candidates(probable_tokens(outcome, member.first_row, request.reported_tokens()));
  } else {
    for (uint32_t row = member.first_row; row < member.first_row + rows; ++row)
      search.judge(largest_similarity(outcome, row),
                   probable_tokens(outcome, row, request.reported_tokens()));
  }
  const bool complete = search.complete();
  if (complete && !take_best(request, member.proposed, now)) return true;
  links_.scheduler.propose_candidates(id, search.unjudged());
  return complete;
}

// The best candidate becomes the request's next token; the last `computed` ones were computed by
// the newest step. False if the request has ended with it.
bool StepLoop::take_best(ActiveRequest& request, uint32_t computed, EngineClock::time_point now) {
  const RequestId id = request.id();
  const size_t before = request.contrastive()->judged() - computed;
  const ContrastiveSearch::Choice choice = request.contrastive()->choose();
  const uint32_t tokens = links_.scheduler.ledger(id)->committed();
  if (choice.index >= before) {
    const auto candidate = static_cast<uint32_t>(choice.index - before);
    links_.scheduler.take_candidate(id, candidate);
    accepted_candidates_ = 1;
    request.set_staged_hidden(staged_hidden(tokens) + candidate);
  } else {
    // Its block has been overwritten: it is computed again.
    links_.scheduler.truncate(id, tokens);
    links_.scheduler.token(id, choice.token.id);
  }
  GeneratedToken token{.id = choice.token.id, .logprob = choice.token.logprob};
  const size_t wanted =
      std::min<size_t>(request.request().sampling.top_logprobs, choice.top.size());
  for (size_t i = 0; i < wanted; ++i)
    token.top.push_back({.id = choice.top[i].id, .logprob = choice.top[i].logprob});
  const FinishReason reason = accept(request, std::move(token), now);
  if (reason != FinishReason::kNone) {
    links_.requests.end(id, reason);
    return false;
  }
  request.add_uncounted(1);  // the slot's history has not counted it
  return true;
}

}  // namespace hearth
