// The KV blocks of a sequence: taken for the tokens of a step, copied before they are written if
// they are shared, offered to the prefix cache once they are full, given back.
#include <algorithm>

#include "engine/scheduling/scheduler.h"

namespace hearth {

// Whether the block that the next token goes into is shared.
bool Scheduler::needs_copy(const Sequence& sequence) const {
  return sequence.computed() % kTokensPerBlock != 0 &&
         blocks_.references(sequence.blocks[sequence.computed() / kTokensPerBlock]) > 1;
}

// Gives the sequence blocks for its planned tokens. Returns false and does nothing if there are too
// few.
bool Scheduler::grow_for_step(Sequence& sequence) {
  const std::uint32_t target = sequence.blocks_after(sequence.planned);
  const std::uint32_t held = static_cast<std::uint32_t>(sequence.blocks.size());
  const bool copies = needs_copy(sequence);
  const std::uint32_t wanted = (target > held ? target - held : 0) + (copies ? 1 : 0);
  if (wanted > blocks_.available()) return false;
  if (sequence.computed() % kTokensPerBlock != 0) {
    BlockId& block = sequence.blocks[sequence.computed() / kTokensPerBlock];
    if (copies) {
      const BlockId copy = blocks_.allocate(sequence.id);
      plan_.copies.push_back({.from = block, .to = copy});
      blocks_.release(block, plan_.step);
      block = copy;
    } else if (blocks_.findable(block)) {
      // The sequence took tokens of a full block back.
      blocks_.forget(block);
    }
  }
  while (sequence.blocks.size() < target) sequence.blocks.push_back(blocks_.allocate(sequence.id));
  return true;
}

std::uint32_t Scheduler::tokens_that_fit(const Sequence& sequence) const {
  std::uint32_t available = blocks_.available();
  if (needs_copy(sequence)) {
    if (available == 0) return 0;
    --available;
  }
  const std::uint32_t blocks = static_cast<std::uint32_t>(sequence.blocks.size()) + available;
  return blocks * kTokensPerBlock - sequence.computed();
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

void Scheduler::observe_blocks(BlockObserver* observer) {
  observer_ = observer;
  blocks_.observe(observer);
}

void Scheduler::forget_prefixes() {
  blocks_.forget_all();
  for (Sequence* sequence : running_) sequence->remembered = 0;
}

}  // namespace hearth
