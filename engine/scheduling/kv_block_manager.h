// The pool of KV blocks by number: who holds how many references to which, which are cached for
// sequences that begin the same, and which of those is given up first. It knows nothing of
// requests beyond an id to show, and nothing of the memory behind the numbers.
//
// A block is in one of four states:
//   free    no references, nothing worth keeping
//   cached  no references, but its contents can be found by hash; given up when blocks run short,
//           the least recently released first
//   owned   one reference or more; it may be findable by hash as well, once it is full
//   withheld  beyond the size the pool was set to: as if it did not exist
// Not thread-safe. Nothing here allocates after the constructor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/scheduling/batch_plan.h"
#include "engine/scheduling/prefix_cache.h"

namespace hearth {

enum class BlockState : std::uint8_t { kFree, kCached, kOwned, kWithheld };

class KvBlockManager {
 public:
  explicit KvBlockManager(std::uint32_t blocks);

  // That were made, whatever the pool is set to.
  std::uint32_t total() const { return static_cast<std::uint32_t>(blocks_.size()); }
  std::uint32_t pool() const { return pool_; }
  std::uint32_t free() const { return static_cast<std::uint32_t>(free_.size()); }
  std::uint32_t cached() const { return cached_; }
  std::uint32_t used() const { return total() - available() - withheld(); }
  std::uint32_t shared() const { return shared_; }  // with more than one reference
  // What allocate() can give: free and cached ones.
  std::uint32_t available() const { return free() + cached_; }

  // Withholds what is beyond `blocks`, or gives it out again: free blocks first, then cached ones,
  // the oldest first. What is in use is withheld as it is released; until then it is owed, and
  // nothing is available. REQUIRES: blocks <= total().
  void set_pool(std::uint32_t blocks);
  std::uint32_t withheld() const { return static_cast<std::uint32_t>(withheld_.size()); }
  std::uint32_t owed() const { return total() - pool_ - withheld(); }

  // A block with one reference. REQUIRES: available() > 0.
  BlockId allocate(RequestId owner);
  // One more reference, to an owned or a cached block.
  void share(BlockId block);
  // One reference less. The last one makes it cached or free. A sequence lets go of its blocks
  // from the last to the first, so that beginnings stay longer than what follows them.
  void release(BlockId block, std::uint64_t step);

  // Makes a full block findable. Nothing happens if another block holds the same already.
  void remember(BlockId block, const BlockHash& hash);
  std::optional<BlockId> find(const BlockHash& hash) const { return cache_.find(hash); }
  // Gives up every hash; cached blocks become free.
  void forget_all();

  BlockState state(BlockId block) const;
  std::uint32_t references(BlockId block) const { return blocks_[block].references; }
  bool findable(BlockId block) const { return blocks_[block].findable; }
  const BlockHash& hash(BlockId block) const { return blocks_[block].hash; }
  RequestId owner(BlockId block) const { return blocks_[block].owner; }
  std::uint64_t last_use(BlockId block) const { return blocks_[block].last_use; }
  std::uint64_t evictions() const { return evictions_; }

  // What is wrong with lists, counts and table, if anything.
  std::optional<std::string> check_integrity() const;

 private:
  static constexpr BlockId kNone = 0xffffffff;
  struct Block {
    std::uint32_t references = 0;
    BlockId older = kNone, newer = kNone;  // the list of cached blocks
    bool findable = false, withheld = false;
    BlockHash hash;
    RequestId owner = 0;         // who allocated it
    std::uint64_t last_use = 0;  // the step at its last release
  };

  BlockId give_up_oldest();
  void withhold(BlockId block);
  void unlink(BlockId block);
  void append(BlockId block);

  std::vector<Block> blocks_;
  std::vector<BlockId> free_;  // the last is given next
  std::vector<BlockId> withheld_;
  std::uint32_t pool_;
  BlockId oldest_ = kNone, newest_ = kNone;
  std::uint32_t cached_ = 0, shared_ = 0;
  std::uint64_t evictions_ = 0;
  PrefixCache cache_;
};

}  // namespace hearth
