// Admission: which waiting requests start running, and which blocks they start with: none, a cached
// prefix's, their fork parent's, or their own swapped-out ones. Admitting a request never preempts
// another.
#include <algorithm>
#include <cassert>

#include "engine/scheduling/scheduler.h"

namespace hearth {
namespace {

// With on-demand blocks, admission leaves one block free for this many running requests. Without
// that reserve a newly admitted request would soon be preempted again.
constexpr std::size_t kRunningPerHeadroomBlock = 4;

}  // namespace

// Admits in queue order and stops at the first request that does not fit, so a large request cannot
// be starved by smaller ones behind it. Only requests that cannot run yet, however much room there
// is, are skipped.
void Scheduler::admit(Phase phase) {
  const bool by_request = policy_.admission == Admission::kRequest;
  const bool forming = by_request && batch_live_ == 0;
  if (short_of_blocks_ || queue_.empty()) return;
  if (by_request && !forming && batch_live_ == running_.size()) return;
  if (forming && waits_for_batch_to_fill()) return;

  const std::size_t most = most_members();
  std::uint32_t left = rows_left();
  std::uint32_t promised = promised_blocks();
  std::size_t taken = taken_seats();
  std::uint32_t rest_of_group = 0;  // members to be admitted after the one that was
  for (std::uint32_t index = 0; index < queue_.size();) {
    Sequence& sequence = queue_[index];
    const bool joins = rest_of_group > 0;
    const std::uint32_t members = joins ? 1 : waiting_members(index);
    if (!joins) {
      // A batch of request admission is formed at once, even if its first step cannot take it all.
      if (taken >= most || (left == 0 && !by_request)) break;
      bool may_run = !by_request || forming || sequence.batch == batch_;
      bool any_ready = false;
      for (std::uint32_t i = 0; i < members; ++i) {
        may_run &= admissible(queue_[index + i]);
        any_ready |= queue_[index + i].ready();
      }
      if (!may_run || !any_ready) {
        index += members;
        continue;
      }
      // Alone, a group runs even if the limit was lowered below its size.
      if (taken + members + sequence.seats - 1 > most && taken > 0) break;
    }
    const Start from = find_start(sequence);
    const bool prompt = sequence.in_prompt(from.computed);
    if (!joins) {
      if (phase == Phase::kDecodes && prompt) break;
      if (phase == Phase::kPrompts && !prompt && !forming) break;
      if (from.new_blocks + promised + others_need(index, members) > blocks_.available()) break;
      rest_of_group = members;
    }
    --rest_of_group;
    taken += sequence.seats;

    queue_.erase(index);
    limit_logit_rows(sequence);
    if (forming) join_batch(sequence);
    start(sequence, from);
    if (phase != Phase::kPrompts || prompt) plan_admitted(sequence, left);
    const std::uint32_t held = static_cast<std::uint32_t>(sequence.blocks.size());
    promised += from.need_blocks > held ? from.need_blocks - held : 0;
    // The shared block is copied later: by equalize_chunks(), or once the step has time for it.
    if (needs_copy(sequence)) ++promised;
  }
}

// The rows of the step that its members have not got.
std::uint32_t Scheduler::rows_left() const {
  if (time_is_used_up_) return 0;
  const bool padded = policy_.layout == Layout::kPadded;
  std::uint32_t left = limits_.max_step_tokens;
  for (const Sequence* sequence : running_)
    left -= padded ? (sequence->planned > 0 ? 1 : 0) : sequence->planned;
  return left;
}

// Request admission: the sequence is a member of the batch that is being formed.
void Scheduler::join_batch(Sequence& sequence) {
  if (batch_live_ == 0) ++batch_;
  sequence.batch = batch_;
  ++batch_live_;
  ++batch_rows_;
}

// Gives a request that was just admitted its part of the step.
void Scheduler::plan_admitted(Sequence& sequence, std::uint32_t& left) {
  if (!sequence.ready()) return;
  if (policy_.layout == Layout::kPadded) {
    // The chunk size is known only when all are admitted: see equalize_chunks().
    sequence.planned = std::min(left, 1u);
    left -= sequence.planned;
    return;
  }
  sequence.planned = take_chunk(sequence, left);
  if (sequence.planned == 0) return;
  [[maybe_unused]] const bool grown = grow_for_step(sequence);
  assert(grown && "admission counted the blocks");
}

// How many members of its group wait from this place of the queue on; 1 for a request without one.
std::uint32_t Scheduler::waiting_members(std::uint32_t index) const {
  const RequestId group = queue_[index].group;
  std::uint32_t end = index + 1;
  while (group != 0 && end < queue_.size() && queue_[end].group == group) ++end;
  return end - index;
}

// Blocks to be left when the first of these members of the queue has its own: for the others, and
// for the requests that run already.
std::size_t Scheduler::others_need(std::uint32_t index, std::uint32_t members) const {
  std::size_t wanted =
      policy_.kv != KvAllocation::kReserve ? running_.size() / kRunningPerHeadroomBlock : 0;
  for (std::uint32_t i = 1; i < members; ++i) wanted += find_start(queue_[index + i]).new_blocks;
  return wanted;
}

// Slots that are taken, or kept for forks of running requests.
std::uint32_t Scheduler::taken_seats() const {
  std::uint32_t seats = 0;
  for (const Sequence* sequence : running_) seats += sequence->seats;
  return seats;
}

// The most requests that may run at once.
std::uint32_t Scheduler::most_members() const {
  const std::uint32_t most = std::min(limits_.max_sequences, limits_.max_step_tokens);
  const bool sized = policy_.admission == Admission::kRequest && policy_.batch_size > 0;
  return sized ? std::min(most, policy_.batch_size) : most;
}

// Dynamic batching: whether a batch of request admission is held back because it is not full and
// its oldest member has not waited long enough yet. If so, notes when that will be.
bool Scheduler::waits_for_batch_to_fill() {
  if (policy_.batch_window_ms == 0 || !arrivals_expected_) return false;
  if (queue_.size() >= most_members()) return false;
  std::chrono::nanoseconds oldest = queue_[0].arrival_time;
  for (std::uint32_t i = 1; i < queue_.size(); ++i)
    oldest = std::min(oldest, queue_[i].arrival_time);
  const auto closes = oldest + std::chrono::milliseconds(policy_.batch_window_ms);
  if (now_ >= closes) return false;
  window_closes_ = closes;
  return true;
}

// Whether the request could run now if there were room. A group is admitted as a whole, so a member
// that has sampled may run too: the host uses its token once the others have sampled.
bool Scheduler::admissible(const Sequence& sequence) const {
  if (sequence.pending()) return false;
  if (!sequence.ready()) return sequence.group != 0 && sequence.awaiting();
  if (sequence.fork_tokens == 0 || policy_.admission == Admission::kRequest ||
      policy_.kv == KvAllocation::kNone)
    return true;
  // A fork waits until its parent has computed the shared tokens. It does not wait for a preempted
  // parent. In a closed batch it cannot wait, because no request is admitted later.
  const Sequence* parent = find(sequence.parent);
  if (parent == nullptr || sequence.state == SequenceState::kSwapped) return true;
  if (parent->state == SequenceState::kRunning) return fork_parent(sequence) != nullptr;
  return parent->preempted || parent->state == SequenceState::kEnding;
}

// The parent if this step can share its blocks, that is, if earlier steps have computed them.
const Sequence* Scheduler::fork_parent(const Sequence& sequence) const {
  if (sequence.fork_tokens == 0 || policy_.admission == Admission::kRequest ||
      policy_.kv == KvAllocation::kNone)
    return nullptr;
  const Sequence* parent = find(sequence.parent);
  const bool ready = parent != nullptr && parent->state == SequenceState::kRunning &&
                     parent->admitted_step < plan_.step &&
                     std::min(parent->computed(), parent->known()) >=
                         std::min(sequence.fork_tokens, sequence.committed() - 1);
  return ready ? parent : nullptr;
}

Scheduler::Start Scheduler::find_start(const Sequence& sequence) const {
  Start start{.computed = sequence.computed(),
              .need_blocks = policy_.kv == KvAllocation::kReserve ? sequence.max_blocks()
                                                                  : sequence.blocks_to_start()};
  start.new_blocks = start.need_blocks;
  if (sequence.state == SequenceState::kSwapped) return start;

  std::uint32_t held_by_others = 0;
  if (caches_prefixes()) {
    const std::uint32_t most = sequence.shareable() / kTokensPerBlock;
    while (start.hit_blocks < most) {
      const std::optional<BlockId> block = blocks_.find(sequence.hashes()[start.hit_blocks]);
      if (!block) break;
      if (blocks_.references(*block) > 0) ++held_by_others;
      ++start.hit_blocks;
    }
  }
  start.computed = start.hit_blocks * kTokensPerBlock;
  const Sequence* parent = fork_parent(sequence);
  const std::uint32_t shared = std::min(sequence.fork_tokens, sequence.committed() - 1);
  if (parent != nullptr && shared > start.computed) {
    // A partly shared block is copied when it is written to.
    start.parent = parent;
    start.computed = shared;
    start.hit_blocks = 0;
    held_by_others = shared / kTokensPerBlock;
  }
  start.new_blocks -= held_by_others;
  return start;
}

void Scheduler::start(Sequence& sequence, const Start& start) {
  if (sequence.state == SequenceState::kSwapped) {
    swap_in(sequence);
  } else {
    if (sequence.is_new()) --new_waiting_;
    sequence.set_computed(start.computed);
    sequence.remembered = start.hit_blocks;
    for (std::uint32_t i = 0; i < blocks_for(start.computed); ++i) {
      const BlockId block =
          start.parent != nullptr ? start.parent->blocks[i] : *blocks_.find(sequence.hashes()[i]);
      blocks_.share(block);
      sequence.blocks.push_back(block);
    }
    // Hits are counted for new requests only: a preempted request finds its own blocks, which says
    // nothing about sharing, and a fork does not search the cache.
    if (caches_prefixes() && !sequence.preempted && start.parent == nullptr)
      totals_.prefix_query_tokens += sequence.committed();
    if (start.hit_blocks > 0 && !sequence.preempted) totals_.prefix_hit_tokens += start.computed;
    if (start.hit_blocks > 0 && sequence.followed == nullptr) {
      plan_.prefix_hits.push_back({.request = sequence.id, .tokens = start.computed});
    }
    if (start.parent != nullptr) ++totals_.forks;
  }
  if (policy_.kv == KvAllocation::kReserve)
    while (sequence.blocks.size() < start.need_blocks)
      sequence.blocks.push_back(blocks_.allocate(sequence.id));

  take_slot(sequence);
  sequence.admitted_step = plan_.step;
  if (sequence.followed == nullptr) plan_.admitted.push_back(sequence.id);
}

// The sequence runs from now on.
void Scheduler::take_slot(Sequence& sequence) {
  const auto slot = std::find(slots_.begin(), slots_.end(), false);
  assert(slot != slots_.end());
  *slot = true;
  sequence.slot = static_cast<std::uint32_t>(slot - slots_.begin());
  sequence.state = SequenceState::kRunning;
  list_as_running(sequence);
}

void Scheduler::swap_in(Sequence& sequence) {
  for (BlockId host : sequence.host_blocks) {
    const BlockId block = blocks_.allocate(sequence.id);
    sequence.blocks.push_back(block);
    plan_.swap_in.push_back({.from = host, .to = block});
    // Safe to reuse: every preemption of this plan came before the first admission.
    swap_.release(host);
  }
  sequence.host_blocks.clear();
  --swapped_;
}

// Blocks that running requests still need for the rest of their prompts.
std::uint32_t Scheduler::promised_blocks() const {
  std::uint32_t promised = 0;
  for (const Sequence* sequence : running_) {
    // A search needs blocks for new candidates after every step.
    if (!sequence->in_prompt() && sequence->candidates == 0 &&
        sequence->admitted_step != plan_.step)
      continue;
    const std::uint32_t held = static_cast<std::uint32_t>(sequence->blocks.size());
    const std::uint32_t need = sequence->blocks_to_start();
    promised += need > held ? need - held : 0;
  }
  return promised;
}

}  // namespace hearth
