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
    recent_copies_ = record.blocks_copied;
    last_copy_step_ = record.step;
  }
  if (!view.has_snapshot) {
    has_snapshot_ = false;
    owners_.clear();
    recently_copied_.clear();
    reservations_.clear();
    reserved_stats_ = {};
    const SchedulerCounts& counts = view.counts;
    stats_ = {.blocks = counts.blocks_used + counts.blocks_cached + counts.blocks_free,
              .free = counts.blocks_free,
              .cached = counts.blocks_cached,
              .owned = counts.blocks_used,
              .shared = counts.blocks_shared,
              .reserved = counts.blocks_reserved,
              .tokens = counts.kv_tokens,
              .wasted_slots = counts.wasted_tokens};
    running_ = counts.running;
    if (!view.new_steps.empty()) step_ = view.new_steps.back().step;
  } else if (!unchanged(view)) {
    step_ = view.snapshot_step;
    count_blocks(view.blocks);
    simulate_reservation(view);
    has_snapshot_ = true;
    sequences_ = view.sequences.size();
    counts_ = view.counts;
  }
  if (step_ >= last_copy_step_ + kCopyMarkSteps) recent_copies_ = 0;
}

// Whether the view still holds the snapshot of the previous update.
bool BlockMap::unchanged(const EngineView& view) const {
  return has_snapshot_ && view.snapshot_step == step_ && view.blocks.size() == owners_.size() &&
         view.sequences.size() == sequences_ && view.counts.blocks_free == counts_.blocks_free &&
         view.counts.blocks_cached == counts_.blocks_cached;
}

// Steps record how many blocks were copied, not which. A copy is recognised as a block that had no
// owner in the last snapshot, has exactly one now, and already holds tokens but no hash (only full
// blocks have one).
void BlockMap::count_blocks(std::span<const BlockView> blocks) {
  std::erase_if(recently_copied_,
                [&](const auto& each) { return each.second + kCopyMarkSteps <= step_; });
  uint32_t copies = owners_.size() == blocks.size() && pending_step_ <= step_ ? pending_copies_ : 0;
  if (pending_step_ <= step_) pending_copies_ = 0;
  owners_.resize(blocks.size());
  stats_ = {.blocks = static_cast<uint32_t>(blocks.size())};
  uint32_t run = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const BlockView& block = blocks[i];
    const RequestId owner = block.state == BlockState::kOwned ? block.owner : 0;
    const bool owner_changed = owner != owners_[i];
    owners_[i] = owner;
    run = block.state == BlockState::kFree ? run + 1 : 0;
    switch (block.state) {
      case BlockState::kFree:
        ++stats_.free;
        if (run == 1) ++stats_.free_runs;
        stats_.longest_free_run = std::max(stats_.longest_free_run, run);
        break;
      case BlockState::kCached:
        ++stats_.cached;
        break;
      case BlockState::kWithheld:
        ++stats_.withheld;
        break;
      case BlockState::kOwned: {
        const uint32_t filled = std::min(block.filled, kTokensPerBlock);
        ++stats_.owned;
        if (filled == 0) ++stats_.reserved;
        stats_.tokens += filled;
        stats_.wasted_slots += kTokensPerBlock - filled;
        if (block.references > 1) {
          ++stats_.shared;
          stats_.saved_blocks += block.references - 1;
        } else if (copies > 0 && owner_changed && filled > 1 && block.hash == 0) {
          recently_copied_[static_cast<uint32_t>(i)] = step_;
          --copies;
        }
        break;
      }
    }
  }
}

void BlockMap::simulate_reservation(const EngineView& view) {
  reservations_.clear();
  running_ = would_wait_ = 0;
  const auto pool = stats_.blocks - stats_.withheld;
  PoolStats& stats = reserved_stats_;
  stats = {.blocks = pool + stats_.withheld, .withheld = stats_.withheld};
  for (const SequenceView& sequence : view.sequences) {
    if (sequence.state != SequenceState::kRunning) continue;
    ++running_;
    // The last sampled token never enters the KV cache.
    const uint32_t blocks = blocks_for(std::max(sequence.max_tokens, 1u) - 1);
    if (stats.owned + blocks > pool) {
      ++would_wait_;
      continue;
    }
    const uint32_t filled = std::min(blocks_for(sequence.computed), blocks);
    reservations_.push_back({.request = sequence.id,
                             .first = stats.owned,
                             .blocks = blocks,
                             .filled = filled,
                             .tokens = sequence.computed});
    stats.owned += blocks;
    stats.reserved += blocks - filled;
    stats.tokens += sequence.computed;
  }
  stats.wasted_slots = uint64_t{stats.owned} * kTokensPerBlock - stats.tokens;
  stats.free = stats.longest_free_run = pool - stats.owned;
  stats.free_runs = stats.free > 0 ? 1 : 0;
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
