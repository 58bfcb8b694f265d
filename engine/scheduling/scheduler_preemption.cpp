// Preemption: which running request loses its blocks when they run short, and whether they go to
// host memory or are computed again.
#include <algorithm>
#include <cstddef>

#include "engine/scheduling/scheduler.h"

namespace hearth {

// The running request that is preempted next, among those from index `first` on. The best protected
// request is never the victim, so that it can always finish. REQUIRES: there is a victim.
Sequence& Scheduler::victim(std::size_t first) const {
  const auto more_protected = [&](const Sequence* a, const Sequence* b) {
    switch (policy_.victim) {
      case Victim::kYoungest:
        break;
      case Victim::kLeastRecent:
        // Decodes take part in every step unless the host is judging one, so that among the others
        // the time of admission decides.
        if (a->last_step != b->last_step) return a->last_step > b->last_step;
        if (a->admitted_step != b->admitted_step) return a->admitted_step > b->admitted_step;
        break;
      case Victim::kLargest:
        if (a->blocks.size() != b->blocks.size()) return a->blocks.size() < b->blocks.size();
        break;
    }
    return is_better_protected(a, b);
  };
  return **std::max_element(running_.begin() + static_cast<std::ptrdiff_t>(first), running_.end(),
                            more_protected);
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

}  // namespace hearth
