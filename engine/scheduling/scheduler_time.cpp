// A target for the time of steps: while requests decode, prompts get only as many tokens of a step
// as keep the time between two tokens of a request within the target.
#include <algorithm>

#include "engine/scheduling/scheduler.h"

namespace hearth {
namespace {

// Steps are planned for this share of the target, because measured times vary.
constexpr double kPlannedShare = 0.95;
// If decodes alone take longer than the target or nearly so, prompts may make a step this much
// longer, and get this many tokens in any case: they never starve.
constexpr double kPromptShare = 0.25;
constexpr std::uint32_t kLeastPromptTokens = 2 * kTokensPerBlock;

}  // namespace

std::uint32_t Scheduler::target_ms() const {
  return policy_.tbt_target_ms != 0 ? policy_.tbt_target_ms : limits_.step_ms;
}

// How long the step being planned may take, given the decodes that are in it. There is no limit if
// no request is generating tokens: no reader waits, and large chunks are faster.
void Scheduler::limit_time(Phase phase) {
  load_ = {};
  timed_prompt_tokens_ = 0;
  time_limit_.reset();
  time_is_used_up_ = false;
  if (target_ms() == 0 || phase == Phase::kDecodes) return;
  bool streams = false;
  for (const Sequence* sequence : running_) {
    if (sequence->in_prompt()) continue;
    streams = true;
    const std::uint32_t tokens = phase == Phase::kPrompts ? 1 : sequence->planned;
    if (tokens > 0) load_.add_decode(sequence->computed(), tokens);
  }
  if (!streams) return;
  const double target = kPlannedShare * 1e-3 * target_ms();
  const double decodes = load_.rows > 0 ? times_.seconds(load_).value_or(0) : 0;
  if (phase == Phase::kBoth) {
    time_limit_ = std::max(target, (1 + kPromptShare) * decodes);
  } else {
    // The decodes have a step of their own, and a token comes after both.
    time_limit_ = std::max(target - decodes, kPromptShare * decodes);
    load_ = {};
  }
}

// The tokens of the sequence's next chunk, which are taken from what is left of the step.
std::uint32_t Scheduler::take_chunk(const Sequence& sequence, std::uint32_t& left) {
  std::uint32_t tokens = chunk_limit(sequence, left);
  left -= tokens;
  if (!time_limit_ || !sequence.in_prompt()) return tokens;
  const std::uint32_t floor =
      kLeastPromptTokens - std::min(kLeastPromptTokens, timed_prompt_tokens_);
  const std::uint32_t wanted = tokens;
  tokens = times_.most_prompt_tokens(load_, sequence.computed(), wanted, *time_limit_);
  tokens = std::min(wanted, std::max(tokens, floor));
  if (tokens < wanted) {
    time_is_used_up_ = true;
    left = 0;
  }
  load_.add_prompt(sequence.computed(), tokens);
  timed_prompt_tokens_ += tokens;
  return tokens;
}

}  // namespace hearth
