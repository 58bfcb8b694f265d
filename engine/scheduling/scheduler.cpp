// The life of a request (added, given its tokens, finished) and changes of policy and limits. Steps
// are planned in scheduler_plan.cpp.
#include "engine/scheduling/scheduler.h"

#include <algorithm>
#include <utility>

namespace hearth {
namespace {

SchedulerLimits usable(SchedulerLimits limits) {
  limits.max_sequences = std::max(limits.max_sequences, 1u);
  limits.max_step_tokens = std::max(limits.max_step_tokens, 1u);
  return limits;
}

}  // namespace

Scheduler::Scheduler(const SchedulerLimits& limits, const Policy& policy)
    : limits_(usable(limits)),
      slot_count_(limits_.max_sequences),
      policy_(policy),
      blocks_(limits_.pool_blocks),
      swap_(limits_.swap_blocks),
      queue_(limits_.max_queue + slot_count_, policy.order),
      slots_(slot_count_, false) {
  running_.reserve(slot_count_);
  candidates_.reserve(slot_count_);
  plan_.members.reserve(slot_count_);
  plan_.block_ids.reserve(reserved_block_ids(limits_));
  plan_.ids.reserve(limits_.max_step_tokens);
  plan_.parents.reserve(limits_.max_step_tokens);
  plan_.copies.reserve(slot_count_);
  plan_.admitted.reserve(slot_count_);
  plan_.preempted_recompute.reserve(slot_count_);
  plan_.preempted_swap.reserve(slot_count_);
  plan_.prefix_hits.reserve(slot_count_);
}

AddResult Scheduler::add(RequestId id, const NewRequest& request) {
  if (find(id) != nullptr)
    return {Refusal::kInvalid, "request " + std::to_string(id) + " exists already"};
  if (AddResult unfit = check_request(limits_, request); !unfit.accepted()) return unfit;
  if (new_waiting_ >= limits_.max_queue)
    return {Refusal::kQueueFull, "the queue is full with " + std::to_string(new_waiting_) +
                                     (new_waiting_ == 1 ? " request" : " requests") +
                                     "; try again later"};

  const auto max_tokens =
      static_cast<std::uint32_t>(request.prompt.size() + request.max_new_tokens);
  auto owned = std::make_unique<Sequence>(
      id, TokenLedger(request.prompt, max_tokens, root_hash(request.cache_salt)));
  Sequence& sequence = *owned;
  sequence.priority = request.priority;
  sequence.arrival = arrivals_;
  arrivals_ += request.seats;  // its forks come right after it
  sequence.arrival_step = totals_.steps;
  sequence.arrival_time = now_;
  sequence.with_host = request.with_host;
  sequence.compute_all = request.compute_all;
  sequence.candidates = request.candidates;
  if (request.seats > 1) {
    sequence.group = id;
    sequence.group_seats = sequence.seats = request.seats;
  }
  if (request.score_prompt) {
    sequence.score_end = sequence.prompt_tokens() - 1;
  } else if (request.fork && !request.compute_all) {
    if (const Sequence* parent = find(request.fork->parent)) {
      const std::span<const TokenId> theirs = parent->tokens().first(parent->known());
      const auto [end, parent_end] = std::ranges::mismatch(request.prompt, theirs);
      sequence.parent = parent->id;
      sequence.fork_tokens = std::min(request.fork->position,
                                      static_cast<std::uint32_t>(end - request.prompt.begin()));
    }
  }
  queue_.insert(sequence);
  ++new_waiting_;
  sequences_.emplace(id, std::move(owned));
  if (!request.shadow_prompt.empty()) add_shadow(sequence, request);
  return {};
}

Sequence* Scheduler::find(RequestId id) const {
  const auto entry = sequences_.find(id);
  return entry == sequences_.end() ? nullptr : entry->second.get();
}

void Scheduler::token(RequestId id, TokenId token) {
  Sequence* sequence = find(id);
  if (sequence == nullptr) return;
  sequence->append(token);
  if (sequence->shadow != nullptr) sequence->shadow->append(token);
}

std::uint32_t Scheduler::propose(RequestId id, std::span<const TokenId> tokens,
                                 std::span<const std::uint32_t> parents) {
  Sequence* sequence = find(id);
  if (sequence == nullptr || sequence->shadow != nullptr) return 0;
  return sequence->propose(tokens, parents);
}

void Scheduler::learn_proposals(RequestId id, std::span<const TokenId> tokens) {
  if (Sequence* sequence = find(id); sequence != nullptr) sequence->learn_proposals(tokens);
}

void Scheduler::commit(RequestId id, std::uint32_t count) {
  if (Sequence* sequence = find(id); sequence != nullptr) sequence->commit(count);
}

void Scheduler::commit_path(RequestId id, std::span<const std::uint32_t> path) {
  Sequence* sequence = find(id);
  if (sequence == nullptr) return;
  sequence->commit_path(path);
  trim_blocks(*sequence, false);
}

void Scheduler::truncate(RequestId id, std::uint32_t count) {
  Sequence* sequence = find(id);
  if (sequence == nullptr) return;
  const bool takes_back = count < sequence->committed();
  if (const Sequence* shadow = sequence->shadow)
    truncate(shadow->id, count - sequence->prompt_tokens() + shadow->prompt_tokens());
  sequence->truncate(count);
  trim_blocks(*sequence, takes_back);
  if (!takes_back) return;
  if (sequence->state == SequenceState::kEnding) {
    // It was to end with a token that was taken back: it continues as if it had been preempted.
    sequence->set_computed(0);
    sequence->remembered = 0;
    sequence->preempted = true;
    sequence->state = SequenceState::kWaiting;
    queue_.insert(*sequence);
  }
  limit_forks(id, count);
}

// Forks of this request share no more than its first `tokens` when they start, or start again,
// because the others are about to change.
void Scheduler::limit_forks(RequestId id, std::uint32_t tokens) {
  for (const auto& [other, sequence] : sequences_)
    if (sequence->parent == id) sequence->fork_tokens = std::min(sequence->fork_tokens, tokens);
}

void Scheduler::force(RequestId id, std::span<const TokenId> tokens) {
  Sequence* sequence = find(id);
  if (sequence != nullptr && sequence->shadow != nullptr) force(sequence->shadow->id, tokens);
  while (sequence != nullptr && !tokens.empty()) {
    const std::uint32_t taken = sequence->propose(tokens);
    if (taken == 0) return;
    sequence->commit(taken);
    tokens = tokens.subspan(taken);
  }
}

void Scheduler::set_with_host(RequestId id, bool with_host) {
  Sequence* sequence = find(id);
  if (sequence == nullptr) return;
  sequence->with_host = with_host;
  if (sequence->shadow != nullptr) sequence->shadow->with_host = with_host;
}

void Scheduler::finish(RequestId id) {
  const auto entry = sequences_.find(id);
  if (entry == sequences_.end()) return;
  Sequence& sequence = *entry->second;
  if (sequence.shadow != nullptr) finish(sequence.shadow->id);
  switch (sequence.state) {
    case SequenceState::kWaiting:
      if (sequence.is_new()) --new_waiting_;
      queue_.erase(sequence);
      break;
    case SequenceState::kSwapped:
      for (BlockId block : sequence.host_blocks) swap_.release(block);
      --swapped_;
      queue_.erase(sequence);
      break;
    case SequenceState::kRunning:
      stop_running(sequence);
      break;
    case SequenceState::kEnding:
      break;
  }
  leave_batch(sequence);
  sequences_.erase(entry);
}

// Releases slot and blocks. The caller sets the sequence's new state.
void Scheduler::stop_running(Sequence& sequence) {
  remember_blocks(sequence);
  release_blocks(sequence, 0);
  slots_[sequence.slot] = false;
  running_.erase(std::find(running_.begin(), running_.end(), &sequence));
  sequence.planned = 0;
}

void Scheduler::list_as_running(Sequence& sequence) {
  running_.insert(
      std::upper_bound(running_.begin(), running_.end(), &sequence, is_better_protected),
      &sequence);
}

void Scheduler::leave_batch(Sequence& sequence) {
  if (sequence.batch == 0 || sequence.batch != batch_) return;
  sequence.batch = 0;
  if (--batch_live_ == 0) batch_rows_ = 0;
}

void Scheduler::set_policy(const Policy& policy) {
  const Policy before = policy_;
  const bool cached_prefixes = caches_prefixes();
  policy_ = policy;
  queue_.set_order(policy.order);
  if (before.admission != policy.admission) {
    // With request admission the running requests become the batch that the next one waits for;
    // with iteration admission there is no batch.
    ++batch_;
    batch_live_ = batch_rows_ = 0;
    if (policy.admission == Admission::kRequest) {
      for (Sequence* sequence : running_) sequence->batch = batch_;
      batch_live_ = batch_rows_ = static_cast<std::uint32_t>(running_.size());
    }
  }
  if (before.kv == KvAllocation::kReserve && policy.kv != KvAllocation::kReserve)
    for (Sequence* sequence : running_) release_blocks(*sequence, sequence->filled_blocks());
  if (cached_prefixes && !caches_prefixes()) forget_prefixes();
}

void Scheduler::set_limits(std::uint32_t max_sequences, std::uint32_t max_step_tokens,
                           std::uint32_t pool_blocks) {
  limits_.max_sequences = std::clamp(max_sequences, 1u, slot_count_);
  limits_.max_step_tokens = std::max(max_step_tokens, 1u);
  for (const auto& [id, sequence] : sequences_) {
    // A request and its shadow sample in the same step.
    const std::uint32_t least = sequence->shadow != nullptr ? 2 : 1;
    limits_.max_step_tokens = std::max(limits_.max_step_tokens, least);
  }
  if (pool_blocks == 0) return;
  // Any of them may become the best protected request, which must fit when it runs alone.
  for (const auto& [id, sequence] : sequences_)
    if (sequence->state != SequenceState::kEnding)
      pool_blocks = std::max(pool_blocks, sequence->max_group_blocks());
  limits_.pool_blocks = std::min(pool_blocks, blocks_.total());
  blocks_.set_pool(limits_.pool_blocks);
}

void Scheduler::set_priority(RequestId id, std::int32_t priority) {
  const Sequence* first = find(id);
  if (first == nullptr) return;
  if (first->group == 0) return set_priority(*find(id), priority);
  for (const auto& [member, sequence] : sequences_)
    if (sequence->group == first->group) set_priority(*sequence, priority);
}

void Scheduler::set_priority(Sequence& changed, std::int32_t priority) {
  Sequence* const sequence = &changed;
  switch (sequence->state) {
    case SequenceState::kWaiting:
    case SequenceState::kSwapped:
      queue_.erase(*sequence);
      sequence->priority = priority;
      queue_.insert(*sequence);
      break;
    case SequenceState::kRunning:
      running_.erase(std::find(running_.begin(), running_.end(), sequence));
      sequence->priority = priority;
      list_as_running(*sequence);
      break;
    case SequenceState::kEnding:
      break;
  }
}

}  // namespace hearth
