// The life of a request (added, given its tokens, finished) and changes of policy and limits. Steps
// are planned in scheduler_plan.cpp.
#include "engine/scheduling/scheduler.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace hearth {
namespace {

SchedulerLimits usable(SchedulerLimits limits) {
  limits.max_sequences = std::max(limits.max_sequences, 1u);
  limits.max_step_tokens = std::max(limits.max_step_tokens, 1u);
  return limits;
}

AddResult refuse(Refusal refusal, std::string message) { return {refusal, std::move(message)}; }

std::string count(std::uint64_t number, const char* noun) {
  return std::to_string(number) + ' ' + noun + (number == 1 ? "" : "s");
}

// The part of check_request() for a request with a shadow.
AddResult check_shadow(const SchedulerLimits& limits, const NewRequest& request) {
  const std::uint64_t shadow = std::uint64_t{request.shadow_prompt.size()} + request.max_new_tokens;
  if (shadow > limits.context)
    return refuse(Refusal::kTooLong,
                  "a negative prompt of " + count(request.shadow_prompt.size(), "token") +
                      " and up to " + count(request.max_new_tokens, "new token") + " make " +
                      std::to_string(shadow) + "; the context holds " +
                      std::to_string(limits.context));
  if (limits.max_sequences < 2 || limits.max_step_tokens < 2)
    return refuse(Refusal::kInvalid,
                  "guidance runs two sequences at once; the limit of sequences or of tokens per "
                  "step is 1");
  const auto own = static_cast<std::uint32_t>(request.prompt.size()) + request.max_new_tokens;
  const std::uint64_t needed =
      std::uint64_t{blocks_for(own - 1)} + blocks_for(static_cast<std::uint32_t>(shadow) - 1);
  if (needed > limits.pool_blocks)
    return refuse(Refusal::kTooLong,
                  std::to_string(own) + " tokens, and " + std::to_string(shadow) +
                      " with the negative prompt, need " + count(needed, "block") + " of " +
                      std::to_string(kTokensPerBlock) + " tokens; the KV cache has " +
                      std::to_string(limits.pool_blocks));
  return {};
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

std::size_t reserved_block_ids(const SchedulerLimits& limits) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  return std::min(kMost, std::size_t{limits.max_sequences} * blocks_for(limits.context));
}

AddResult check_request(const SchedulerLimits& limits, const NewRequest& request) {
  const std::uint64_t tokens = std::uint64_t{request.prompt.size()} + request.max_new_tokens;
  if (request.prompt.empty()) return refuse(Refusal::kInvalid, "the prompt has no tokens");
  if (request.max_new_tokens == 0)
    return refuse(Refusal::kInvalid, "the request asks for no tokens; ask for at least 1");
  if (request.prompt.size() >= limits.context)
    return refuse(Refusal::kTooLong, "a prompt of " + count(request.prompt.size(), "token") +
                                         " leaves no room for a new token; the context holds " +
                                         std::to_string(limits.context));
  if (tokens > limits.context)
    return refuse(Refusal::kTooLong, "a prompt of " + count(request.prompt.size(), "token") +
                                         " and up to " +
                                         count(request.max_new_tokens, "new token") + " make " +
                                         std::to_string(tokens) + "; the context holds " +
                                         std::to_string(limits.context));
  if (request.seats > limits.max_sequences)
    return refuse(Refusal::kInvalid, "the request runs " + count(request.seats, "sequence") +
                                         " at once; the limit is " +
                                         std::to_string(limits.max_sequences));
  if (request.candidates > 0 && limits.max_proposed == 0)
    return refuse(Refusal::kInvalid,
                  "contrastive search needs more logits per step than one for each sequence");
  if (!request.shadow_prompt.empty()) return check_shadow(limits, request);
  const std::uint64_t needed =
      std::uint64_t{blocks_for(static_cast<std::uint32_t>(tokens) - 1)} * request.seats +
      (request.candidates > 0 ? request.candidates - 1 : 0);
  if (needed > limits.pool_blocks && request.seats > 1)
    return refuse(Refusal::kTooLong,
                  count(request.seats, "sequence") + " of " + std::to_string(tokens) +
                      " tokens need " + count(needed, "block") + " of " +
                      std::to_string(kTokensPerBlock) + " tokens; the KV cache has " +
                      std::to_string(limits.pool_blocks));
  if (needed > limits.pool_blocks)
    return refuse(
        Refusal::kTooLong,
        std::to_string(tokens) + " tokens" +
            (request.candidates > 0 ? " and " + count(request.candidates, "candidate") + " for each"
                                    : "") +
            " need " + count(needed, "block") + " of " + std::to_string(kTokensPerBlock) +
            " tokens; the KV cache has " + std::to_string(limits.pool_blocks));
  return {};
}

AddResult Scheduler::add(RequestId id, const NewRequest& request) {
  if (find(id) != nullptr)
    return refuse(Refusal::kInvalid, "request " + std::to_string(id) + " exists already");
  if (AddResult unfit = check_request(limits_, request); !unfit.accepted()) return unfit;
  if (new_waiting_ >= limits_.max_queue)
    return refuse(Refusal::kQueueFull,
                  "the queue is full with " + count(new_waiting_, "request") + "; try again later");

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
  // Forks that still wait for this request no longer share what it took back.
  for (std::uint32_t i = 0; i < queue_.size(); ++i)
    if (queue_[i].fork_tokens > count && queue_[i].parent == id) queue_[i].fork_tokens = count;
}

void Scheduler::sample_again(RequestId id) {
  Sequence* sequence = find(id);
  if (sequence == nullptr) return;
  if (sequence->shadow != nullptr) sample_again(sequence->shadow->id);
  sequence->sample_again();
  trim_blocks(*sequence, true);
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
      if (!sequence.preempted) --new_waiting_;
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

// A group is preempted as a whole: its members wait for each other, so that two halves of groups
// could block each other forever.
void Scheduler::preempt(Sequence& sequence) {
  const RequestId group = sequence.group;
  if (group == 0) return preempt_one(sequence);
  for (std::size_t i = running_.size(); i-- > 0;)
    if (running_[i]->group == group) preempt_one(*running_[i]);
}

void Scheduler::preempt_one(Sequence& sequence) {
  const std::uint32_t filled = blocks_for(sequence.computed());
  const bool swaps = policy_.preemption == Preemption::kSwap && policy_.kv != KvAllocation::kNone &&
                     filled > 0 && swap_.available() >= filled && !sequence.compute_all;
  if (swaps) {
    for (std::uint32_t i = 0; i < filled; ++i) {
      const BlockId host = swap_.allocate();
      sequence.host_blocks.push_back(host);
      plan_.swap_out.push_back({.from = sequence.blocks[i], .to = host});
    }
  }
  stop_running(sequence);
  sequence.preempted = true;
  ++sequence.preemptions;
  sequence.remembered = 0;
  if (swaps) {
    sequence.state = SequenceState::kSwapped;
    ++swapped_;
    if (sequence.followed == nullptr) {
      ++totals_.preemptions_swap;
      plan_.preempted_swap.push_back(sequence.id);
    }
  } else {
    sequence.state = SequenceState::kWaiting;
    sequence.set_computed(0);
    if (sequence.followed == nullptr) {
      ++totals_.preemptions_recompute;
      plan_.preempted_recompute.push_back(sequence.id);
    }
  }
  queue_.insert(sequence);
  short_of_blocks_ = true;
}

void Scheduler::remember_blocks(Sequence& sequence) {
  if (!caches_prefixes()) return;
  // Only committed tokens have hashes; the newest computed ones may be pending or proposed.
  const std::uint32_t full = std::min(sequence.computed() / kTokensPerBlock,
                                      static_cast<std::uint32_t>(sequence.hashes().size()));
  for (; sequence.remembered < full; ++sequence.remembered) {
    const std::uint32_t index = sequence.remembered;
    const BlockHash& hash = sequence.hashes()[index];
    if (!blocks_.remember(sequence.blocks[index], hash) || observer_ == nullptr) continue;
    observer_->stored(
        hash, index == 0 ? sequence.root() : sequence.hashes()[index - 1],
        sequence.tokens().subspan(std::size_t{index} * kTokensPerBlock).first<kTokensPerBlock>());
  }
}

void Scheduler::observe_blocks(BlockObserver* observer) {
  observer_ = observer;
  blocks_.observe(observer);
}

// Releases the blocks beyond what is computed, after tokens were dropped. `took_back` says that
// some of them were committed; their blocks may be findable or shared, so even a reservation is
// exchanged for other blocks then.
void Scheduler::trim_blocks(Sequence& sequence, bool took_back) {
  const std::uint32_t keep = blocks_for(sequence.computed());
  sequence.remembered = std::min(sequence.remembered, sequence.computed() / kTokensPerBlock);
  while (sequence.host_blocks.size() > keep) {
    swap_.release(sequence.host_blocks.back());
    sequence.host_blocks.pop_back();
  }
  const bool reserved = policy_.kv == KvAllocation::kReserve;
  const std::size_t held = sequence.blocks.size();
  if (reserved && !took_back) return;
  release_blocks(sequence, keep);
  if (!reserved) return;
  while (sequence.blocks.size() < held && blocks_.available() > 0)
    sequence.blocks.push_back(blocks_.allocate(sequence.id));
}

void Scheduler::release_blocks(Sequence& sequence, std::size_t keep) {
  while (sequence.blocks.size() > keep) {
    blocks_.release(sequence.blocks.back(), sequence.last_step);
    sequence.blocks.pop_back();
  }
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

void Scheduler::forget_prefixes() {
  blocks_.forget_all();
  for (Sequence* sequence : running_) sequence->remembered = 0;
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
