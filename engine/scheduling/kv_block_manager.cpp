#include "engine/scheduling/kv_block_manager.h"

#include <algorithm>
#include <cassert>
#include <functional>

namespace hearth {

KvBlockManager::KvBlockManager(std::uint32_t blocks)
    : blocks_(blocks), pool_(blocks), cache_(blocks) {
  free_.reserve(blocks);
  withheld_.reserve(blocks);
  for (BlockId block = blocks; block-- > 0;) free_.push_back(block);
}

BlockId KvBlockManager::allocate(RequestId owner) {
  BlockId block = kNone;
  if (!free_.empty()) {
    block = free_.back();
    free_.pop_back();
  } else {
    block = evict_oldest();
  }
  blocks_[block] = {.references = 1, .owner = owner};
  return block;
}

BlockId KvBlockManager::evict_oldest() {
  assert(oldest_ != kNone);
  const BlockId block = oldest_;
  unlink(block);
  erase_hash(blocks_[block].hash);
  blocks_[block].findable = false;
  ++evictions_;
  return block;
}

void KvBlockManager::erase_hash(const BlockHash& hash) {
  cache_.erase(hash);
  if (observer_ != nullptr) observer_->removed(hash);
}

void KvBlockManager::withhold(BlockId block) {
  blocks_[block] = {.withheld = true};
  withheld_.push_back(block);
}

void KvBlockManager::set_pool(std::uint32_t blocks) {
  assert(blocks <= total());
  pool_ = blocks;
  for (BlockId block : withheld_) blocks_[block].withheld = false;
  free_.insert(free_.end(), withheld_.begin(), withheld_.end());
  withheld_.clear();
  // The lowest are handed out next and the highest withheld, so that a smaller pool looks like the
  // start of the full one.
  std::sort(free_.begin(), free_.end(), std::greater<>());
  const std::uint32_t beyond = total() - pool_;
  const std::uint32_t from_free = std::min(beyond, free());
  for (std::uint32_t i = 0; i < from_free; ++i) withhold(free_[i]);
  free_.erase(free_.begin(), free_.begin() + from_free);
  while (excess() > 0 && oldest_ != kNone) withhold(evict_oldest());
}

void KvBlockManager::share(BlockId block) {
  if (blocks_[block].references == 0) {
    assert(blocks_[block].findable);
    unlink(block);
  }
  if (++blocks_[block].references == 2) ++shared_;
}

void KvBlockManager::release(BlockId block, std::uint64_t step) {
  Block& entry = blocks_[block];
  assert(entry.references > 0);
  entry.last_use = step;
  if (--entry.references == 1) --shared_;
  if (entry.references > 0) return;
  if (excess() > 0) {
    if (entry.findable) erase_hash(entry.hash);
    withhold(block);
  } else if (entry.findable) {
    append(block);
  } else {
    free_.push_back(block);
  }
}

bool KvBlockManager::remember(BlockId block, const BlockHash& hash) {
  Block& entry = blocks_[block];
  assert(entry.references > 0);
  if (entry.findable || !cache_.insert(hash, block)) return false;
  entry.findable = true;
  entry.hash = hash;
  return true;
}

void KvBlockManager::forget(BlockId block) {
  Block& entry = blocks_[block];
  assert(entry.findable && entry.references == 1);
  erase_hash(entry.hash);
  entry.findable = false;
}

void KvBlockManager::forget_all() {
  while (oldest_ != kNone) {
    const BlockId block = oldest_;
    unlink(block);
    free_.push_back(block);
  }
  for (Block& entry : blocks_) entry.findable = false;
  if (observer_ != nullptr && cache_.size() > 0) observer_->cleared();
  cache_.clear();
}

BlockState KvBlockManager::state(BlockId block) const {
  if (blocks_[block].withheld) return BlockState::kWithheld;
  if (blocks_[block].references > 0) return BlockState::kOwned;
  return blocks_[block].findable ? BlockState::kCached : BlockState::kFree;
}

void KvBlockManager::unlink(BlockId block) {
  Block& entry = blocks_[block];
  (entry.older == kNone ? oldest_ : blocks_[entry.older].newer) = entry.newer;
  (entry.newer == kNone ? newest_ : blocks_[entry.newer].older) = entry.older;
  entry.older = entry.newer = kNone;
  --cached_;
}

void KvBlockManager::append(BlockId block) {
  Block& entry = blocks_[block];
  entry.older = newest_;
  entry.newer = kNone;
  (newest_ == kNone ? oldest_ : blocks_[newest_].newer) = block;
  newest_ = block;
  ++cached_;
}

std::optional<std::string> KvBlockManager::check_integrity() const {
  const auto about = [](BlockId block, const char* what) {
    return "block " + std::to_string(block) + ' ' + what;
  };
  std::vector<std::uint8_t> seen(blocks_.size(), 0);
  for (BlockId block : free_) {
    if (block >= blocks_.size()) return about(block, "is free but not in the pool");
    if (seen[block]++ != 0) return about(block, "is free twice");
    if (blocks_[block].references != 0) return about(block, "is free but has references");
    if (blocks_[block].findable) return about(block, "is free but can be found");
  }
  for (BlockId block : withheld_) {
    if (seen[block]++ != 0) return about(block, "is withheld twice, or free as well");
    if (blocks_[block].references != 0) return about(block, "is withheld but has references");
    if (blocks_[block].findable) return about(block, "is withheld but can be found");
    if (!blocks_[block].withheld) return about(block, "is listed as withheld but not marked so");
  }
  if (withheld() > total() - pool_) return "more blocks are withheld than should be";
  if (excess() > 0 && available() > 0) return "blocks are available while others exceed the pool";
  std::uint32_t listed = 0;
  BlockId before = kNone;
  for (BlockId block = oldest_; block != kNone; block = blocks_[block].newer) {
    if (seen[block]++ != 0) return about(block, "is listed twice");
    if (blocks_[block].references != 0) return about(block, "is cached but has references");
    if (!blocks_[block].findable) return about(block, "is cached but cannot be found");
    if (blocks_[block].older != before) return about(block, "has a broken link");
    before = block;
    ++listed;
  }
  if (before != newest_) return "the list of cached blocks does not end where it should";
  if (listed != cached_)
    return std::to_string(listed) + " blocks are listed as cached, but the count is " +
           std::to_string(cached_);
  std::uint32_t findable = 0, shared = 0;
  for (BlockId block = 0; block < blocks_.size(); ++block) {
    if (seen[block] == 0 && blocks_[block].references == 0) return about(block, "is lost");
    if (blocks_[block].withheld && seen[block] == 0)
      return about(block, "is marked as withheld but not listed");
    shared += blocks_[block].references > 1 ? 1 : 0;
    if (!blocks_[block].findable) continue;
    ++findable;
    if (cache_.find(blocks_[block].hash) != block)
      return about(block, "is not where its hash points");
  }
  if (shared != shared_) return "shared blocks are miscounted";
  if (findable != cache_.size())
    return std::to_string(findable) + " blocks are findable, but the table has " +
           std::to_string(cache_.size());
  return std::nullopt;
}

}  // namespace hearth
