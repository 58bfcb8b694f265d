// The pool of KV blocks by number: how many references each has, which are cached for later
// requests with the same prefix, and which of those is evicted first. It knows nothing of requests
// beyond an id to show, and nothing of the memory behind the numbers.
//
// A block is in one of four states:
//   free      no references, nothing worth keeping
//   cached    no references, but its contents can be found by hash; evicted when blocks run short,
//             the least recently released first
//   owned     one reference or more; once it is full it may be findable by hash as well
//   withheld  beyond the size the pool was set to; never handed out
// Not thread-safe. Nothing here allocates after the constructor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/scheduling/batch_plan.h"
#include "engine/scheduling/block_observer.h"
#include "engine/scheduling/prefix_cache.h"

namespace hearth {

enum class BlockState : std::uint8_t { kFree, kCached, kOwned, kWithheld };

class KvBlockManager {
 public:
  explicit KvBlockManager(std::uint32_t blocks);

  // Blocks the manager was created with, whatever size the pool is set to.
  std::uint32_t total() const { return static_cast<std::uint32_t>(blocks_.size()); }
  std::uint32_t pool() const { return pool_; }
  std::uint32_t free() const { return static_cast<std::uint32_t>(free_.size()); }
  std::uint32_t cached() const { return cached_; }
  std::uint32_t used() const { return total() - available() - withheld(); }
  std::uint32_t shared() const { return shared_; }  // with more than one reference
  // Blocks that allocate() can hand out: the free and the cached ones.
  std::uint32_t available() const { return free() + cached_; }

  // Sets the size of the pool. Blocks beyond it are withheld: free blocks first, then cached ones
  // from the oldest on. If too many are in use, the excess is withheld as blocks are released;
  // until then nothing is available. A larger pool hands withheld blocks out again. REQUIRES:
  // blocks <= total().
  void set_pool(std::uint32_t blocks);
  std::uint32_t withheld() const { return static_cast<std::uint32_t>(withheld_.size()); }
  // Blocks in use that the pool is too small for.
  std::uint32_t excess() const { return total() - pool_ - withheld(); }

  // A block with one reference. REQUIRES: available() > 0.
  BlockId allocate(RequestId owner);
  // Adds a reference to an owned or a cached block.
  void share(BlockId block);
  // Drops a reference. Without references the block becomes cached or free. A sequence releases its
  // blocks from the last to the first, so that the start of a prefix is evicted last.
  void release(BlockId block, std::uint64_t step);

  // Makes a full block findable. Returns false if it was already, or if another block with the same
  // contents is.
  bool remember(BlockId block, const BlockHash& hash);
  std::optional<BlockId> find(const BlockHash& hash) const { return cache_.find(hash); }
  // Makes a block of one sequence unfindable, because its contents are about to change.
  // REQUIRES: findable(block), and one reference.
  void forget(BlockId block);
  // Forgets every hash; cached blocks become free.
  void forget_all();
  // `observer` learns of blocks that can no longer be found. May be null.
  void observe(BlockObserver* observer) { observer_ = observer; }

  BlockState state(BlockId block) const;
  std::uint32_t references(BlockId block) const { return blocks_[block].references; }
  bool findable(BlockId block) const { return blocks_[block].findable; }
  const BlockHash& hash(BlockId block) const { return blocks_[block].hash; }
  RequestId owner(BlockId block) const { return blocks_[block].owner; }
  std::uint64_t last_use(BlockId block) const { return blocks_[block].last_use; }
  std::uint64_t evictions() const { return evictions_; }

  // Describes the first inconsistency between lists, counts and table, if there is one.
  std::optional<std::string> check_integrity() const;

 private:
  static constexpr BlockId kNone = 0xffffffff;
  struct Block {
    std::uint32_t references = 0;
    BlockId older = kNone, newer = kNone;  // the list of cached blocks
    bool findable = false, withheld = false;
    BlockHash hash;
    RequestId owner = 0;         // the request that allocated it
    std::uint64_t last_use = 0;  // the step at its last release
  };

  BlockId evict_oldest();
  void erase_hash(const BlockHash& hash);
  void withhold(BlockId block);
  void unlink(BlockId block);
  void append(BlockId block);

  std::vector<Block> blocks_;
  std::vector<BlockId> free_;  // the last is handed out next
  std::vector<BlockId> withheld_;
  std::uint32_t pool_;
  BlockId oldest_ = kNone, newest_ = kNone;
  std::uint32_t cached_ = 0, shared_ = 0;
  std::uint64_t evictions_ = 0;
  PrefixCache cache_;
  BlockObserver* observer_ = nullptr;
};

}  // namespace hearth
