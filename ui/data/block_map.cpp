#include "ui/data/block_map.h"

#include <algorithm>

namespace hearth {

void BlockMap::update(const EngineView& view) {
  if (view.generation != generation_) {
    *this = BlockMap();
    generation_ = view.generation;
  }
  for (const StepRecord& record : view.new_steps) {
    if (record.blocks_copied == 0) continue;
    copies_ += record.blocks_copied;
    pending_copies_ += record.blocks_copied;
    pending_step_ = record.step;
    copied_lately_ = record.blocks_copied;
    last_copy_step_ = record.step;
  }
  if (!view.has_details) {
    has_details_ = false;
    cells_.clear();
    reservations_.clear();
    reserved_numbers_ = {};
    const SchedulerCounts& counts = view.counts;
    numbers_ = {.blocks = counts.blocks_used + counts.blocks_cached + counts.blocks_free,
                .free = counts.blocks_free,
                .cached = counts.blocks_cached,
                .owned = counts.blocks_used,
                .shared = counts.blocks_shared,
                .reserved = counts.blocks_reserved,
                .tokens = counts.kv_tokens,
                .wasted = counts.wasted_tokens};
    running_ = counts.running;
    if (!view.new_steps.empty()) step_ = view.new_steps.back().step;
  } else if (!unchanged(view)) {
    step_ = view.details_step;
    note_copies(pending_copies_, view.blocks);
    cells_.resize(view.blocks.size());
    for (size_t i = 0; i < cells_.size(); ++i) {
      const BlockView& block = view.blocks[i];
      BlockCell& cell = cells_[i];
      const uint64_t copied = block.state == BlockState::kOwned ? cell.copied : 0;
      cell = {.state = block.state,
              .owner = block.owner,
              .references = block.references,
              .filled = std::min(block.filled, kTokensPerBlock),
              .hash = block.hash,
              .last_use = block.last_use,
              .copied = copied};
    }
    count_cells();
    reserve(view);
    has_details_ = true;
    sequences_ = view.sequences.size();
    counts_ = view.counts;
  }
  if (step_ >= last_copy_step_ + kCopyShownSteps) copied_lately_ = 0;
}

// Whether the view has the same look at the blocks as the one before.
bool BlockMap::unchanged(const EngineView& view) const {
  return has_details_ && view.details_step == step_ && view.blocks.size() == cells_.size() &&
         view.sequences.size() == sequences_ && view.counts.blocks_free == counts_.blocks_free &&
         view.counts.blocks_cached == counts_.blocks_cached;
}

// Steps say how many blocks were copied, not which. A copy is a block that somebody began to write
// into with tokens before his in it: it was nobody's when looked at last, is one sequence's now,
// and has tokens but no hash, since only full blocks have one.
void BlockMap::note_copies(uint32_t copies, std::span<const BlockView> blocks) {
  if (copies == 0 || pending_step_ > step_) return;
  for (size_t i = 0; copies > 0 && i < std::min(cells_.size(), blocks.size()); ++i) {
    const BlockView& block = blocks[i];
    const bool before = cells_[i].state == BlockState::kOwned && cells_[i].owner == block.owner;
    if (before || block.state != BlockState::kOwned || block.references != 1) continue;
    if (block.filled < 2 || block.hash != 0) continue;
    cells_[i].copied = step_;
    --copies;
  }
  pending_copies_ = 0;
}

void BlockMap::count_cells() {
  numbers_ = {.blocks = static_cast<uint32_t>(cells_.size())};
  uint32_t stretch = 0;
  for (const BlockCell& cell : cells_) {
    if (cell.state == BlockState::kFree) {
      ++numbers_.free;
      if (stretch++ == 0) ++numbers_.free_stretches;
      numbers_.longest_free = std::max(numbers_.longest_free, stretch);
      continue;
    }
    stretch = 0;
    if (cell.state == BlockState::kCached) ++numbers_.cached;
    if (cell.state == BlockState::kWithheld) ++numbers_.withheld;
    if (cell.state != BlockState::kOwned) continue;
    ++numbers_.owned;
    if (cell.filled == 0) ++numbers_.reserved;
    numbers_.tokens += cell.filled;
    numbers_.wasted += kTokensPerBlock - cell.filled;
    if (cell.shared()) {
      ++numbers_.shared;
      numbers_.saved_blocks += cell.references - 1;
    }
  }
}

void BlockMap::reserve(const EngineView& view) {
  reservations_.clear();
  running_ = left_out_ = 0;
  const auto pool = static_cast<uint32_t>(cells_.size()) - numbers_.withheld;
  PoolNumbers& numbers = reserved_numbers_;
  numbers = {.blocks = pool + numbers_.withheld, .withheld = numbers_.withheld};
  for (const SequenceView& sequence : view.sequences) {
    if (sequence.state != SequenceState::kRunning) continue;
    ++running_;
    // The last token sampled is never computed.
    const uint32_t blocks = blocks_for(std::max(sequence.max_tokens, 1u) - 1);
    if (numbers.owned + blocks > pool) {
      ++left_out_;
      continue;
    }
    const uint32_t filled = std::min(blocks_for(sequence.computed), blocks);
    reservations_.push_back({.request = sequence.id,
                             .first = numbers.owned,
                             .blocks = blocks,
                             .filled = filled,
                             .tokens = sequence.computed});
    numbers.owned += blocks;
    numbers.reserved += blocks - filled;
    numbers.tokens += sequence.computed;
  }
  numbers.wasted = uint64_t{numbers.owned} * kTokensPerBlock - numbers.tokens;
  numbers.free = numbers.longest_free = pool - numbers.owned;
  numbers.free_stretches = numbers.free > 0 ? 1 : 0;
}

const BlockMap::Reservation* BlockMap::reservation_at(size_t block) const {
  const auto next =
      std::upper_bound(reservations_.begin(), reservations_.end(), block,
                       [](size_t b, const Reservation& each) { return b < each.first; });
  if (next == reservations_.begin()) return nullptr;
  const Reservation& found = *(next - 1);
  return block < size_t{found.first} + found.blocks ? &found : nullptr;
}

}  // namespace hearth
