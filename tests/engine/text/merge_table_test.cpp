// Compares merging with the simplest implementation.
#include "engine/text/merge_table.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace hearth::testing {
namespace {

struct Merge {
  std::uint32_t rank, merged;
};
using Merges = std::map<std::pair<std::uint32_t, std::uint32_t>, Merge>;

std::vector<std::uint32_t> plainly(std::vector<std::uint32_t> symbols, const Merges& merges) {
  while (true) {
    std::size_t best = symbols.size();
    std::uint32_t rank = MergeTable::kNever;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = merges.find({symbols[i], symbols[i + 1]});
      if (found != merges.end() && found->second.rank < rank) best = i, rank = found->second.rank;
    }
    if (best == symbols.size()) return symbols;
    symbols[best] = merges.at({symbols[best], symbols[best + 1]}).merged;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(MergeTable, EqualsTheSimplestImplementationAtEveryLength) {
  std::mt19937 random(11);
  for (int round = 0; round < 400; ++round) {
    Merges merges;
    std::uint32_t next = 4;
    for (int i = 0; i < 40; ++i) {
      const std::pair<std::uint32_t, std::uint32_t> pair = {random() % next, random() % next};
      // Some ranks are equal; the leftmost of those merges first.
      if (merges.emplace(pair, Merge{static_cast<std::uint32_t>(i / 2), next}).second) ++next;
    }
    MergeTable table(merges.size());
    for (const auto& [pair, merge] : merges)
      table.add(pair.first, pair.second, merge.rank, merge.merged);
    std::vector<std::uint32_t> symbols(random() % 150), widths;
    for (auto& symbol : symbols) symbol = random() % 20 == 0 ? kNoToken : random() % 4;
    widths.assign(symbols.size(), 1);
    const std::size_t count = symbols.size();
    const auto expected = plainly(symbols, merges);
    table.merge(symbols, &widths);
    EXPECT_EQ(symbols, expected);
    ASSERT_EQ(widths.size(), symbols.size());
    std::size_t total = 0;
    for (const std::uint32_t width : widths) total += width;
    EXPECT_EQ(total, count);
  }
}

}  // namespace
}  // namespace hearth::testing
