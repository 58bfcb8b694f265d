#include "engine/scheduling/prefix_cache.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace hearth {
namespace {

// The two halves run the same mixing from different constants over the same input.
constexpr std::uint64_t kLowMultiplier = 0x9e3779b97f4a7c15;   // 2^64 over the golden ratio
constexpr std::uint64_t kHighMultiplier = 0xd1342543de82ef95;  // a multiplier of Steele and Vigna

// A bijection that moves every input bit to every output bit (the finalizer of splitmix64).
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

BlockHash absorb(const BlockHash& state, std::uint64_t word) {
  // Each half takes in the word and the other half, so that a collision needs both halves to match.
  return {mix(state.low * kLowMultiplier + std::rotl(state.high, 23) + word),
          mix(state.high * kHighMultiplier + std::rotl(state.low, 41) + ~word)};
}

}  // namespace

BlockHash root_hash(std::uint64_t salt) {
  return absorb({.low = 0x6865617274680001, .high = 0x6b76626c6f636b73}, salt);
}

BlockHash chain_hash(const BlockHash& parent, std::span<const TokenId, kTokensPerBlock> tokens) {
  BlockHash hash = parent;
  for (std::size_t i = 0; i < tokens.size(); i += 2)
    hash = absorb(hash, std::uint64_t{tokens[i]} | std::uint64_t{tokens[i + 1]} << 32);
  return hash;
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
