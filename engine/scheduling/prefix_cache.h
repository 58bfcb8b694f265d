// Finds the block that holds the KV of a given prefix: a table from chained hashes of full blocks
// to block ids. It neither owns nor counts blocks; KvBlockManager does. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/scheduling/batch_plan.h"
#include "engine/scheduling/sip_hash.h"

namespace hearth {

// Identifies a block's tokens together with all tokens before them. Keyed with a number that each
// process draws anew, and 128 bits long: two different prefixes collide neither by accident nor
// because a client constructed them to.
using BlockHash = Hash128;

// The hash that a sequence's first block is chained to. Requests with different salts share
// nothing.
BlockHash root_hash(std::uint64_t salt);
BlockHash chain_hash(const BlockHash& parent, std::span<const TokenId, kTokensPerBlock> tokens);

// An open-addressing table that allocates only when created.
class PrefixCache {
 public:
  // Holds up to `blocks` entries.
  explicit PrefixCache(std::uint32_t blocks);

  std::optional<BlockId> find(const BlockHash& hash) const;
  // Returns false and changes nothing if the hash has a block already.
  // REQUIRES: fewer than `blocks` entries.
  bool insert(const BlockHash& hash, BlockId block);
  // REQUIRES: the hash is there.
  void erase(const BlockHash& hash);
  void clear();
  std::uint32_t size() const { return size_; }

 private:
  struct Entry {
    BlockHash hash;
    BlockId block = kEmpty;
  };
  static constexpr BlockId kEmpty = 0xffffffff;

  std::size_t home(const BlockHash& hash) const { return hash.low & mask_; }

  std::vector<Entry> entries_;  // a power of two, at most half full
  std::size_t mask_ = 0;
  std::uint32_t size_ = 0;
};

}  // namespace hearth
