#include "engine/scheduling/scheduler_views.h"

#include <algorithm>

#include "engine/scheduling/scheduler.h"

namespace hearth {

SchedulerCounts Scheduler::counts() const {
  SchedulerCounts counts{.waiting = queue_.size() - swapped_,
                         .running = static_cast<std::uint32_t>(running_.size()),
                         .swapped = swapped_,
                         .blocks_used = blocks_.used(),
                         .blocks_cached = blocks_.cached(),
                         .blocks_free = blocks_.free(),
                         .blocks_shared = blocks_.shared(),
                         .swap_used = swap_.used(),
                         .swap_total = swap_.total()};
  counts.ending = static_cast<std::uint32_t>(sequences_.size()) - counts.running - queue_.size();
  for (const Sequence* sequence : running_) {
    const std::uint32_t held = static_cast<std::uint32_t>(sequence->blocks.size());
    counts.blocks_reserved += held - sequence->filled_blocks();
    counts.kv_tokens += sequence->computed();
    counts.wasted_tokens += std::uint64_t{held} * kTokensPerBlock - sequence->filled_places();
  }
  return counts;
}

SequenceView Scheduler::view(const Sequence& sequence) const {
  return {
      .id = sequence.id,
      .state = sequence.state,
      .slot = sequence.slot,
      .priority = sequence.priority,
      .prompt_tokens = sequence.prompt_tokens(),
      .committed = sequence.committed(),
      .proposed = sequence.proposed(),
      .computed = sequence.computed(),
      .max_tokens = sequence.max_tokens(),
      .pending = sequence.pending(),
      .ready = sequence.ready(),
      .batch = sequence.batch,
      .blocks = static_cast<std::uint32_t>(sequence.blocks.size() + sequence.host_blocks.size()),
      .preemptions = sequence.preemptions};
}

std::optional<SequenceView> Scheduler::sequence(RequestId id) const {
  const Sequence* sequence = find(id);
  return sequence == nullptr ? std::nullopt : std::optional(view(*sequence));
}

void Scheduler::view_sequences(std::vector<SequenceView>& views) const {
  views.clear();
  const auto add = [&](const Sequence& sequence) {
    if (sequence.followed == nullptr) views.push_back(view(sequence));
  };
  for (const Sequence* sequence : running_) add(*sequence);
  for (std::uint32_t i = 0; i < queue_.size(); ++i) add(queue_[i]);
}

void Scheduler::view_block_tables(std::vector<BlockId>& ids) const {
  ids.clear();
  for (const Sequence* sequence : running_)
    if (sequence->followed == nullptr)
      ids.insert(ids.end(), sequence->blocks.begin(), sequence->blocks.end());
}

void Scheduler::view_blocks(std::vector<BlockView>& views) const {
  views.assign(blocks_.total(), {});
  for (BlockId block = 0; block < blocks_.total(); ++block) {
    BlockView& view = views[block];
    view.state = blocks_.state(block);
    view.owner = blocks_.owner(block);
    view.references = blocks_.references(block);
    view.filled = view.state == BlockState::kCached ? kTokensPerBlock : 0;
    view.hash = blocks_.findable(block) ? blocks_.hash(block).low : 0;
    view.last_use = blocks_.last_use(block);
  }
  // Fill levels change at every step; they are taken from the sequences here instead of being kept
  // up to date in every block.
  for (const Sequence* sequence : running_) {
    for (std::size_t i = 0; i < sequence->blocks.size(); ++i) {
      BlockView& view = views[sequence->blocks[i]];
      const std::uint32_t filled = sequence->filled_places(static_cast<std::uint32_t>(i));
      const Sequence* owner = find(view.owner);
      if (owner == nullptr || owner->state != SequenceState::kRunning) view.owner = sequence->id;
      view.filled = std::max(view.filled, filled);
      view.last_use = std::max(view.last_use, filled > 0 ? sequence->last_step : 0);
    }
  }
  for (BlockView& view : views) view.owner &= ~kShadowBit;
}

}  // namespace hearth
