// Groups: the sequences of one request, which are forks of each other, or the request and its
// shadow. They have the same rank but for the order in which they were made, so that members are
// neighbours in every list.
#include <algorithm>
#include <cassert>

#include "engine/scheduling/scheduler.h"

namespace hearth {

// The index after the last running member of the group of running_[first].
std::size_t Scheduler::group_end(std::size_t first) const {
  if (first >= running_.size()) return running_.size();
  const RequestId group = running_[first]->group;
  std::size_t end = first + 1;
  while (group != 0 && end < running_.size() && running_[end]->group == group) ++end;
  return end;
}

// Makes sure that all members of a group get their blocks, so that it need not be preempted after
// some of them have got theirs. If no other request can be preempted, the group itself is: false.
bool Scheduler::make_room_for_group(std::size_t first, std::size_t end) {
  while (wanted_blocks(first, end) > blocks_.available()) {
    if (end == running_.size()) {
      preempt(*running_[first]);
      return false;
    }
    preempt(victim(end));
  }
  return true;
}

// Blocks that the planned tokens of running members need beyond those that the members have.
std::uint32_t Scheduler::wanted_blocks(std::size_t first, std::size_t end) const {
  std::uint32_t wanted = 0;
  for (std::size_t i = first; i < end; ++i) {
    const Sequence& sequence = *running_[i];
    if (sequence.planned == 0) continue;
    const std::uint32_t target = blocks_for(sequence.computed() + sequence.planned);
    const auto held = static_cast<std::uint32_t>(sequence.blocks.size());
    wanted += target > held ? target - held : 0;
    if (!needs_copy(sequence)) continue;
    // The last member that writes to a block need not copy it if no other sequence has it.
    const BlockId block = sequence.blocks[sequence.computed() / kTokensPerBlock];
    std::uint32_t others = blocks_.references(block) - 1;
    for (std::size_t k = first; k < i; ++k) {
      const Sequence& before = *running_[k];
      if (before.planned > 0 && needs_copy(before) &&
          before.blocks[before.computed() / kTokensPerBlock] == block)
        --others;
    }
    wanted += others > 0 ? 1 : 0;
  }
  return wanted;
}

void Scheduler::fork(RequestId id, RequestId parent_id) {
  Sequence* parent = find(parent_id);
  if (parent == nullptr) return;
  Sequence* found = find(id);
  Sequence& sequence = found != nullptr ? *found : add_fork(id, *parent);
  assert(&sequence != parent && sequence.group == parent->group && parent->awaiting());
  limit_forks(id, sequence.prompt_tokens());
  release_blocks(sequence, 0);
  static_cast<TokenLedger&>(sequence) = *parent;
  sequence.last_step = parent->last_step;
  sequence.sampled_step = parent->sampled_step;
  ++totals_.forks;
  if (parent->state == SequenceState::kRunning) {
    const std::size_t shared = blocks_for(parent->computed());
    for (std::size_t i = 0; i < shared; ++i) {
      blocks_.share(parent->blocks[i]);
      sequence.blocks.push_back(parent->blocks[i]);
    }
    sequence.remembered = parent->remembered;
    // A reservation, as far as there are blocks for it.
    while (policy_.kv == KvAllocation::kReserve && sequence.blocks.size() < sequence.max_blocks() &&
           blocks_.available() > 0)
      sequence.blocks.push_back(blocks_.allocate(sequence.id));
    return;
  }
  // The group was preempted meanwhile. Blocks in host memory are not shared: it computes its own.
  for (const BlockId block : sequence.host_blocks) swap_.release(block);
  sequence.host_blocks.clear();
  if (sequence.state == SequenceState::kSwapped) --swapped_;
  sequence.state = SequenceState::kWaiting;
  sequence.set_computed(0);
  sequence.remembered = 0;
}

// A new member, which runs or waits as its parent does, without blocks yet.
Sequence& Scheduler::add_fork(RequestId id, Sequence& parent) {
  assert(parent.seats > 1);
  const std::span<const TokenId> prompt = parent.tokens().first(parent.prompt_tokens());
  auto owned =
      std::make_unique<Sequence>(id, TokenLedger(prompt, parent.max_tokens(), parent.root()));
  Sequence& sequence = *owned;
  sequence.priority = parent.priority;
  sequence.arrival = parent.arrival + (parent.group_seats - parent.seats) + 1;
  sequence.arrival_step = parent.arrival_step;
  sequence.arrival_time = parent.arrival_time;
  sequence.with_host = parent.with_host;
  sequence.group = parent.group;
  sequence.group_seats = parent.group_seats;
  --parent.seats;
  sequences_.emplace(id, std::move(owned));
  if (parent.batch != 0 && parent.batch == batch_) {
    sequence.batch = batch_;
    ++batch_live_;
    ++batch_rows_;
  }
  if (parent.state == SequenceState::kRunning) {
    sequence.admitted_step = parent.admitted_step;
    take_slot(sequence);
    forked_.push_back(id);
  } else {
    sequence.preempted = true;
    queue_.insert(sequence);
  }
  return sequence;
}

// The shadow of a request that was just added.
void Scheduler::add_shadow(Sequence& sequence, const NewRequest& request) {
  const RequestId id = sequence.id | kShadowBit;
  const auto max_tokens =
      static_cast<std::uint32_t>(request.shadow_prompt.size()) + request.max_new_tokens;
  auto owned = std::make_unique<Sequence>(
      id, TokenLedger(request.shadow_prompt, max_tokens, root_hash(request.cache_salt)));
  Sequence& shadow = *owned;
  shadow.priority = sequence.priority;
  shadow.arrival = arrivals_++;
  shadow.arrival_step = sequence.arrival_step;
  shadow.arrival_time = sequence.arrival_time;
  shadow.with_host = sequence.with_host;
  shadow.group = sequence.group = sequence.id;
  shadow.followed = &sequence;
  sequence.shadow = &shadow;
  queue_.insert(shadow);
  sequences_.emplace(id, std::move(owned));
}

// A request and its shadow sample in the same step. If only one of the two would reach its newest
// token in this step, it stops before it.
void Scheduler::sample_in_pairs() {
  for (Sequence* sequence : running_) {
    if (sequence->shadow == nullptr) continue;
    Sequence& shadow = *sequence->shadow;
    if (sequence->planned_to_sample() == shadow.planned_to_sample()) continue;
    --(shadow.planned_to_sample() ? shadow : *sequence).planned;
  }
}

}  // namespace hearth
