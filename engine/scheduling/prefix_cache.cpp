#include "engine/scheduling/prefix_cache.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <random>

namespace hearth {
namespace {

// Drawn once per process, so that nobody can build a prompt whose hash equals another one's.
struct Key {
  std::uint64_t low, high;
};
const Key& process_key() {
  static const Key key = [] {
    std::random_device random;
    const auto word = [&] { return std::uint64_t{random()} << 32 | random(); };
    return Key{word(), word()};
  }();
  return key;
}

}  // namespace

BlockHash root_hash(std::uint64_t salt) {
  SipHash hash(process_key().low, process_key().high);
  hash.add(salt);
  return hash.finish();
}

BlockHash chain_hash(const BlockHash& parent, std::span<const TokenId, kTokensPerBlock> tokens) {
  SipHash hash(process_key().low, process_key().high);
  hash.add(parent.low);
  hash.add(parent.high);
  for (std::size_t i = 0; i < tokens.size(); i += 2)
    hash.add(std::uint64_t{tokens[i]} | std::uint64_t{tokens[i + 1]} << 32);
  return hash.finish();
}

PrefixCache::PrefixCache(std::uint32_t blocks)
    : entries_(std::bit_ceil(std::max<std::size_t>(std::size_t{blocks} * 2, 16))),
      mask_(entries_.size() - 1) {}

std::optional<BlockId> PrefixCache::find(const BlockHash& hash) const {
  for (std::size_t i = home(hash); entries_[i].block != kEmpty; i = (i + 1) & mask_)
    if (entries_[i].hash == hash) return entries_[i].block;
  return std::nullopt;
}

bool PrefixCache::insert(const BlockHash& hash, BlockId block) {
  assert(std::size_t{size_} * 2 < entries_.size());
  std::size_t i = home(hash);
  for (; entries_[i].block != kEmpty; i = (i + 1) & mask_)
    if (entries_[i].hash == hash) return false;
  entries_[i] = {hash, block};
  ++size_;
  return true;
}

void PrefixCache::erase(const BlockHash& hash) {
  std::size_t hole = home(hash);
  while (!(entries_[hole].hash == hash)) {
    assert(entries_[hole].block != kEmpty);
    hole = (hole + 1) & mask_;
  }
  // Entries behind the hole move into it unless that would put them in front of their home, so that
  // searches never have to step over deleted entries.
  for (std::size_t i = (hole + 1) & mask_; entries_[i].block != kEmpty; i = (i + 1) & mask_) {
    const std::size_t distance_to_home = (i - home(entries_[i].hash)) & mask_;
    const std::size_t distance_to_hole = (i - hole) & mask_;
    if (distance_to_home < distance_to_hole) continue;
    entries_[hole] = entries_[i];
    hole = i;
  }
  entries_[hole] = {};
  --size_;
}

void PrefixCache::clear() {
  std::fill(entries_.begin(), entries_.end(), Entry{});
  size_ = 0;
}

}  // namespace hearth
