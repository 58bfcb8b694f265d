// What the KV blocks panel shows apart from the blocks themselves (they stay in the view):
// statistics of the pool, which blocks are recent copies, and how the same requests would fill the
// pool if each reserved blocks for its longest possible answer. Call only from the window's thread.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "ui/feeds/engine_view.h"

namespace hearth {

struct PoolStats {
  uint32_t blocks = 0, free = 0, cached = 0, owned = 0, shared = 0;
  uint32_t withheld = 0;      // outside the pool since it was shrunk
  uint32_t reserved = 0;      // owned blocks without a token
  uint64_t tokens = 0;        // stored in owned blocks
  uint64_t wasted_slots = 0;  // token slots of owned blocks without a token
  uint64_t saved_blocks = 0;  // blocks that sharing saves
  uint32_t free_runs = 0;     // runs of adjacent free blocks
  uint32_t longest_free_run = 0;

  double used_share() const { return share(owned, blocks); }
  // The fraction of owned token slots without a token: internal fragmentation.
  double wasted_share() const { return share(wasted_slots, tokens + wasted_slots); }

 private:
  static double share(uint64_t part, uint64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }
};

class BlockMap {
 public:
  // For how many steps a copied block is marked.
  static constexpr uint64_t kCopyMarkSteps = 8;

  void update(const EngineView& view);

  bool has_snapshot() const { return has_snapshot_; }
  const PoolStats& stats() const { return stats_; }
  uint64_t step() const { return step_; }  // the newest step that the blocks reflect
  uint64_t steps_since_read(const BlockView& block) const {
    return block.last_use == 0 || block.last_use > step_ ? 0 : step_ - block.last_use;
  }
  bool recently_copied(uint32_t block) const { return recently_copied_.contains(block); }
  uint64_t copies() const { return copies_; }  // since the dashboard began to watch this engine
  uint32_t recent_copies() const { return recent_copies_; }

  // The pool as it would be under reservation.
  struct Reservation {
    RequestId request = 0;
    uint32_t first = 0, blocks = 0;  // the reserved range of the pool
    uint32_t filled = 0;             // blocks of the range that hold a token
    uint32_t tokens = 0;
  };
  std::span<const Reservation> reservations() const { return reservations_; }
  const PoolStats& reserved_stats() const { return reserved_stats_; }
  uint32_t running() const { return running_; }
  // How many of the running requests would have to wait.
  uint32_t would_wait() const { return would_wait_; }
  // The reservation that contains a block, or null.
  const Reservation* reservation_at(size_t block) const;

 private:
  bool unchanged(const EngineView& view) const;
  void count_blocks(std::span<const BlockView> blocks);
  void simulate_reservation(const EngineView& view);

  uint64_t generation_ = 0;
  bool has_snapshot_ = false;
  std::vector<RequestId> owners_;  // of each block in the previous snapshot; 0: none
  PoolStats stats_, reserved_stats_;
  uint64_t step_ = 0, copies_ = 0, last_copy_step_ = 0;
  uint32_t recent_copies_ = 0;
  uint32_t pending_copies_ = 0;  // of steps newer than the snapshot
  uint64_t pending_step_ = 0;
  std::unordered_map<uint32_t, uint64_t> recently_copied_;  // block to step
  std::vector<Reservation> reservations_;
  uint32_t running_ = 0, would_wait_ = 0;
  size_t sequences_ = 0;
  SchedulerCounts counts_;
};

}  // namespace hearth
