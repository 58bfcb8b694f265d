// Blocks of host memory by number, for requests that are swapped out. Not thread-safe. Nothing here
// allocates after the constructor.
#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

#include "engine/scheduling/batch_plan.h"

namespace hearth {

class SwapPool {
 public:
  explicit SwapPool(std::uint32_t blocks) : total_(blocks) {
    free_.reserve(blocks);
    for (BlockId block = blocks; block-- > 0;) free_.push_back(block);
  }

  std::uint32_t total() const { return total_; }
  std::uint32_t available() const { return static_cast<std::uint32_t>(free_.size()); }
  std::uint32_t used() const { return total_ - available(); }

  // REQUIRES: available() > 0.
  BlockId allocate() {
    assert(!free_.empty());
    const BlockId block = free_.back();
    free_.pop_back();
    return block;
  }
  void release(BlockId block) { free_.push_back(block); }

  const std::vector<BlockId>& free_blocks() const { return free_; }

 private:
  std::uint32_t total_;
  std::vector<BlockId> free_;
};

}  // namespace hearth
