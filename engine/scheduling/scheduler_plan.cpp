// The stages of planning a step: choose the running requests that take part and their tokens; give
// them blocks, preempting others if blocks run short; admit waiting requests; write the plan.
#include <algorithm>
#include <cassert>
#include <span>

#include "engine/scheduling/scheduler.h"

namespace hearth {
namespace {

// With separate phases, the most prompt steps in a row while decodes wait, so that a stream of
// prompts cannot starve them.
constexpr std::uint32_t kMostPromptSteps = 8;

}  // namespace

const BatchPlan& Scheduler::plan() {
  begin_step();
  if (policy_.phases == Phases::kMixed)
    plan_mixed();
  else
    plan_one_phase();
  finish_step();
  return plan_;
}

// Prompts and decodes in one step. The plan is empty if every chosen request preempted itself.
// Others can run then: it tries again.
void Scheduler::plan_mixed() {
  std::size_t running = 0;
  do {
    running = running_.size();
    plan_phase(Phase::kBoth);
  } while (planned_members() == 0 && running_.size() < running);
}

// Prompts alone, or decodes alone if there are no prompts or it is their turn. Like plan_mixed(),
// it tries again if every chosen request preempted itself.
void Scheduler::plan_one_phase() {
  const bool decodes_wait = std::any_of(running_.begin(), running_.end(),
                                        [](const Sequence* s) { return !s->in_prompt(); });
  const bool timed = target_ms() != 0 && policy_.layout == Layout::kPacked;
  const bool decodes_first =
      decodes_wait && prompt_steps_in_a_row_ >= (timed ? 1 : kMostPromptSteps);
  std::size_t running = 0;
  Phase phase = Phase::kPrompts;
  do {
    running = running_.size();
    phase = decodes_first ? Phase::kDecodes : Phase::kPrompts;
    plan_phase(phase);
    if (planned_members() > 0) break;
    phase = decodes_first ? Phase::kPrompts : Phase::kDecodes;
    plan_phase(phase);
  } while (planned_members() == 0 && running_.size() < running);
  prompt_steps_in_a_row_ =
      phase == Phase::kPrompts && decodes_wait ? prompt_steps_in_a_row_ + 1 : 0;
}

void Scheduler::begin_step() {
  plan_.clear();
  plan_.step = totals_.steps + 1;
  plan_limit_ = limits_.max_step_tokens;
  short_of_blocks_ = false;
  logit_rows_left_ = limits_.max_proposed;
  window_closes_.reset();
  time_limit_.reset();
  time_is_used_up_ = false;

  for (std::size_t i = 0; i < running_.size();) {
    Sequence& sequence = *running_[i];
    assert(sequence.committed() <= sequence.known() + 1 && "token() was not called in time");
    sequence.planned = 0;
    if (!sequence.full()) {
      remember_blocks(sequence);
      drop_stale_cache(sequence);
      if (sequence.ready()) limit_logit_rows(sequence);
      ++i;
    } else {
      // Its last token is sampled or pending; nothing is left to compute.
      stop_running(sequence);
      sequence.state = SequenceState::kEnding;
      leave_batch(sequence);
    }
  }
  // The pool was made smaller than what is in use. One request, or one group, alone always fits.
  while (blocks_.excess() > 0 && running_.size() > group_end(0)) preempt(victim(group_end(0)));
}

// Without a KV cache nothing survives a step that sampled: the next token is computed from the
// whole sequence again. What earlier chunks of an unfinished pass computed is kept, so that a
// sequence longer than a step's budget can finish.
void Scheduler::drop_stale_cache(Sequence& sequence) {
  if (policy_.kv != KvAllocation::kNone || !sequence.ready()) return;
  if (sequence.sampled_step != sequence.last_step) return;
  release_blocks(sequence, 0);
  sequence.set_computed(0);
  sequence.remembered = 0;
}

// Drops proposals beyond the logit rows of a step, or reserves logit rows to score the prompt.
void Scheduler::limit_logit_rows(Sequence& sequence) {
  // Candidates are not sampled together with the token before them.
  const std::uint32_t own = sequence.has_candidates() ? 1 : 0;
  const std::uint32_t proposed = std::min(sequence.proposed(), logit_rows_left_ + own);
  sequence.truncate_proposals(sequence.committed() + proposed);
  logit_rows_left_ -= proposed - own;
  sequence.score_rows = std::min(sequence.score_end - sequence.scored, logit_rows_left_);
  logit_rows_left_ -= sequence.score_rows;
}

void Scheduler::plan_phase(Phase phase) {
  choose_running(phase);
  sample_in_pairs();
  give_blocks_to_running();
  admit(phase);
  equalize_chunks();
  sample_in_pairs();
}

// Divides the token budget among the running requests, before blocks are considered.
void Scheduler::choose_running(Phase phase) {
  const bool padded = policy_.layout == Layout::kPadded;
  const std::uint32_t budget = limits_.max_step_tokens;
  if (list_candidates(phase) > budget) keep_least_recent(budget);
  if (candidates_.empty()) {
    if (!padded) limit_time(phase);  // of prompts that are admitted now
    return;
  }
  // Without a KV cache every step is a whole pass over a sequence, and a few may fill the budget:
  // they take turns. The best protected one is in every step, because it alone is sure to get
  // blocks.
  if (policy_.kv == KvAllocation::kNone)
    std::sort(candidates_.begin() + 1, candidates_.end(), [](const Sequence* a, const Sequence* b) {
      return a->sampled_step != b->sampled_step ? a->sampled_step < b->sampled_step
                                                : is_better_protected(a, b);
    });
  if (padded) {
    const std::uint32_t chunk = budget / rows(static_cast<std::uint32_t>(candidates_.size()));
    for (Sequence* sequence : candidates_) sequence->planned = chunk_limit(*sequence, chunk);
  } else {
    divide_budget(phase, budget);
  }
}

// Lists the running requests that may take part in the phase, and returns how many rows they need
// at least.
std::uint32_t Scheduler::list_candidates(Phase phase) {
  candidates_.clear();
  std::uint32_t at_least = 0;
  for (Sequence* sequence : running_) {
    if (!sequence->ready()) continue;
    const bool prompt = sequence->in_prompt();
    if (phase != Phase::kBoth && prompt != (phase == Phase::kPrompts)) continue;
    candidates_.push_back(sequence);
    at_least += policy_.layout == Layout::kPadded || !prompt ? 1 : 0;
  }
  return at_least;
}

// Packed steps: decodes first, so that no stream waits for another request's prompt; then the
// proposals of decodes; prompts share the rest.
void Scheduler::divide_budget(Phase phase, std::uint32_t left) {
  for (Sequence* sequence : candidates_) {
    if (sequence->in_prompt()) continue;
    sequence->planned = 1;
    --left;
  }
  for (Sequence* sequence : candidates_) {
    if (sequence->in_prompt() || sequence->proposed() == 0) continue;
    const std::uint32_t guesses = std::min(sequence->next_work() - 1, left);
    sequence->planned += guesses;
    left -= guesses;
  }
  limit_time(phase);
  for (Sequence* sequence : candidates_)
    if (sequence->in_prompt()) sequence->planned = take_chunk(*sequence, left);
}

// Keeps the requests that have waited longest. Only needed after the limits were lowered, when more
// requests run than a step has rows.
void Scheduler::keep_least_recent(std::uint32_t count) {
  if (policy_.layout == Layout::kPacked)
    std::erase_if(candidates_, [](const Sequence* sequence) { return sequence->in_prompt(); });
  std::sort(candidates_.begin(), candidates_.end(), [](const Sequence* a, const Sequence* b) {
    return a->last_step != b->last_step ? a->last_step < b->last_step : is_better_protected(a, b);
  });
  candidates_.resize(count);
  std::sort(candidates_.begin(), candidates_.end(), is_better_protected);
}

std::uint32_t Scheduler::chunk_limit(const Sequence& sequence, std::uint32_t tokens) const {
  std::uint32_t work = std::min(sequence.next_work(), tokens);
  // A chunk that does not sample has its own logit row for another score, so that scoring always
  // continues.
  if (sequence.score_end - sequence.scored > sequence.score_rows)
    work = std::min(work, sequence.scored - sequence.computed() + sequence.score_rows + 1);
  if (policy_.max_chunk_tokens != 0 && sequence.in_prompt())
    work = std::min(work, policy_.max_chunk_tokens);
  return work;
}

// Rows of one position in a padded step of this many members. A batch of request admission keeps
// the rows of members that have ended. Never more than the token budget.
std::uint32_t Scheduler::rows(std::uint32_t members) const {
  const bool whole_batch = policy_.admission == Admission::kRequest;
  return std::min(whole_batch ? std::max(members, batch_rows_) : members, limits_.max_step_tokens);
}

// From the most to the least protected request, so that a preempted one never holds blocks given
// out by this step.
void Scheduler::give_blocks_to_running() {
  std::size_t roomy = 0;  // up to here, blocks for whole groups are there
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    if (i >= roomy && sequence.group != 0) {
      roomy = group_end(i);
      if (!make_room_for_group(i, roomy)) break;
    }
    if (sequence.planned == 0) continue;
    while (!grow_for_step(sequence)) {
      const std::uint32_t certain =
          (sequence.candidates > 0 ? sequence.length() : sequence.committed()) -
          sequence.computed();
      if (sequence.planned > certain) {
        // Guesses are dropped before any request is preempted.
        sequence.planned = std::clamp(tokens_that_fit(sequence), certain, sequence.planned - 1);
      } else if (i + 1 < running_.size()) {
        preempt(victim(i + 1));
      } else if (sequence.in_prompt()) {
        // A prompt continues with the blocks there are, or waits and keeps its own. A better
        // protected request can still take them.
        short_of_blocks_ = true;
        sequence.planned = std::min(sequence.planned, tokens_that_fit(sequence));
        if (sequence.planned == 0) break;
      } else {
        preempt(sequence);
        break;
      }
    }
  }
}

std::uint32_t Scheduler::planned_members() const {
  return static_cast<std::uint32_t>(
      std::count_if(running_.begin(), running_.end(),
                    [](const Sequence* sequence) { return sequence->planned > 0; }));
}

// Padded steps: after admission there may be more members, and then every chunk is smaller.
void Scheduler::equalize_chunks() {
  if (policy_.layout != Layout::kPadded) return;
  const std::uint32_t members = planned_members();
  if (members == 0) return;
  const std::uint32_t chunk = limits_.max_step_tokens / rows(members);
  for (Sequence* sequence : running_) {
    if (sequence->planned == 0) continue;
    const bool admitted_now = sequence->admitted_step == plan_.step;
    sequence->planned =
        admitted_now ? chunk_limit(*sequence, chunk) : std::min(sequence->planned, chunk);
    if (!admitted_now) continue;
    [[maybe_unused]] const bool grown = grow_for_step(*sequence);
    assert(grown && "admission counted the blocks");
  }
}

// Writes the plan, and counts its tokens as computed.
void Scheduler::finish_step() {
  std::uint32_t longest = 0, tokens = 0;
  for (Sequence* sequence : running_) {
    if (sequence->planned == 0) continue;
    const BatchMember member = add_member(*sequence);
    longest = std::max(longest, member.tokens);
    tokens += member.tokens;
    sequence->compute(sequence->planned);
    if (member.samples) {
      sequence->sample(member.awaits_host);
      sequence->sampled_step = plan_.step;
    }
    sequence->last_step = plan_.step;
  }
  if (plan_.empty()) return;
  list_forks_as_admitted();
  if (policy_.layout == Layout::kPadded)
    plan_.padding_tokens =
        rows(static_cast<std::uint32_t>(plan_.members.size())) * longest - tokens;
  ++totals_.steps;
  totals_.padding_tokens += plan_.padding_tokens;
  totals_.copies += plan_.copies.size();
  totals_.evictions = blocks_.evictions();
}

// Adds the sequence's part of the step to the plan.
BatchMember Scheduler::add_member(Sequence& sequence) {
  const std::uint32_t first = sequence.computed();
  const std::uint32_t end = first + sequence.planned;
  const bool candidates = sequence.at_candidates();
  // Candidates wait for the next step if their text is computed in this one.
  const bool samples = end >= sequence.committed() && (candidates || !sequence.has_candidates());
  // Proposals that did not fit are dropped: a step judges all that a sequence has.
  if (samples) sequence.truncate_proposals(end);
  const Sequence* const followed = sequence.followed;
  BatchMember member{.request = followed != nullptr ? followed->id : sequence.id,
                     .shadow = followed != nullptr,
                     .slot = sequence.slot,
                     .first_position = first,
                     .tokens = sequence.planned,
                     .proposed = samples ? sequence.proposed() : 0,
                     .samples = samples,
                     .decodes = !sequence.in_prompt(),
                     .input_on_gpu = samples && sequence.pending(),
                     .input_slot = followed != nullptr ? followed->slot : sequence.slot,
                     .candidates = candidates};
  member.awaits_host = samples && (sequence.with_host || member.proposed > 0);
  member.tree = member.proposed > 0 && !sequence.parents().empty();
  add_scores(sequence, member);
  if (candidates) copy_to_candidates(sequence);
  add_lists(sequence, member);
  plan_.members.push_back(member);
  (member.decodes ? totals_.decode_tokens : totals_.prompt_tokens) += member.tokens;
  totals_.proposed_tokens += member.proposed;
  return member;
}

// The prompt tokens of the member whose successors are scored in this step.
void Scheduler::add_scores(Sequence& sequence, BatchMember& member) {
  const std::uint32_t first = std::max(member.first_position, sequence.scored);
  const std::uint32_t end = std::min(member.first_position + member.tokens, sequence.score_end);
  if (first >= end) return;
  member.first_scored = first - member.first_position;
  member.scored = end - first;
  sequence.scored += member.scored;
}

// What the plan has of all members one after the other: ids, parents, block tables.
void Scheduler::add_lists(const Sequence& sequence, BatchMember& member) {
  const auto size = [](const auto& list) { return static_cast<std::uint32_t>(list.size()); };
  member.first_id = size(plan_.ids);
  member.first_parent = size(plan_.parents);
  member.first_block = size(plan_.block_ids);
  member.blocks = sequence.blocks_after(sequence.planned);
  const std::span<const TokenId> ids = sequence.tokens().subspan(
      member.first_position, member.tokens - (member.input_on_gpu ? 1 : 0));
  plan_.ids.insert(plan_.ids.end(), ids.begin(), ids.end());
  if (member.input_on_gpu) plan_.ids.push_back(0);
  if (member.tree)
    plan_.parents.insert(plan_.parents.end(), sequence.parents().begin(), sequence.parents().end());
  plan_.block_ids.insert(plan_.block_ids.end(), sequence.blocks.begin(),
                         sequence.blocks.begin() + member.blocks);
}

// Forks that were made since the last plan count as admitted by this one.
void Scheduler::list_forks_as_admitted() {
  for (const RequestId id : forked_) {
    const Sequence* sequence = find(id);
    // One that was preempted since is admitted later.
    if (sequence != nullptr && sequence->state == SequenceState::kRunning &&
        sequence->admitted_step < plan_.step)
      plan_.admitted.push_back(id);
  }
  forked_.clear();
}

}  // namespace hearth
