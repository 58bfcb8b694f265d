#include "engine/scheduling/prefix_cache.h"

#include <array>
#include <map>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace hearth {
namespace {

using BlockTokens = std::array<TokenId, kTokensPerBlock>;

BlockTokens block_counting_from(TokenId first) {
  BlockTokens tokens;
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

TEST(PrefixHash, DependsOnEveryTokenTheirOrderAndAllBefore) {
  const BlockTokens tokens = block_counting_from(100);
  const BlockHash hash = chain_hash(root_hash(0), tokens);
  EXPECT_EQ(hash, chain_hash(root_hash(0), tokens));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    BlockTokens changed = tokens;
    changed[i] ^= 1;
    const BlockHash other = chain_hash(root_hash(0), changed);
    EXPECT_NE(other.low, hash.low) << i;
    EXPECT_NE(other.high, hash.high) << i;
  }
  BlockTokens swapped = tokens;
  std::swap(swapped[3], swapped[4]);
  EXPECT_NE(chain_hash(root_hash(0), swapped), hash);
  EXPECT_NE(chain_hash(root_hash(1), tokens), hash) << "a salt changes everything";
  EXPECT_NE(chain_hash(hash, tokens), hash) << "the same tokens further on are not the same block";
}

// Compared with a map, in a table so small that searches and deletions overlap.
TEST(PrefixCache, BehavesLikeAMap) {
  constexpr std::uint32_t kBlocks = 24;
  PrefixCache cache(kBlocks);
  std::map<std::uint64_t, BlockId> model;
  std::mt19937 random(3);
  for (int i = 0; i < 50'000; ++i) {
    // Keys that share their lowest bits collide in the table, and some differ only in `high`.
    const std::uint64_t key = random() % 60;
    const BlockHash hash{.low = key % 5 + (key % 3 << 40), .high = key};
    const auto known = model.find(key);
    ASSERT_EQ(cache.find(hash), known == model.end() ? std::nullopt : std::optional(known->second));
    if (random() % 2 == 0 && model.size() < kBlocks) {
      const BlockId block = static_cast<BlockId>(random() % 1000);
      ASSERT_EQ(cache.insert(hash, block), known == model.end());
      model.emplace(key, block);
    } else if (known != model.end()) {
      cache.erase(hash);
      model.erase(known);
    }
    ASSERT_EQ(cache.size(), model.size());
  }
  cache.clear();
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(cache.find({.low = 0, .high = 0}), std::nullopt);
}

}  // namespace
}  // namespace hearth
