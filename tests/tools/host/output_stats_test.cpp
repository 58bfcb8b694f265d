#include "tools/output_stats.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(OutputStats, CountNgrams) {
  // 1 2 1 2 1 2: two words, two pairs of five, two triples of four, two of three 4-grams.
  const std::vector<uint32_t> ids{1, 2, 1, 2, 1, 2};
  const std::vector<float> logprobs{-1, -2, -3, 0, 0, 0};
  const OutputStats stats = output_stats(ids, logprobs);
  EXPECT_DOUBLE_EQ(stats.distinct[0], 2.0 / 6);
  EXPECT_DOUBLE_EQ(stats.distinct[1], 2.0 / 5);
  EXPECT_DOUBLE_EQ(stats.distinct[2], 2.0 / 4);
  EXPECT_DOUBLE_EQ(stats.repetition, 1.0 / 3);
  EXPECT_DOUBLE_EQ(stats.surprisal, 1);
  EXPECT_EQ(describe(stats).size(), 5u);
  EXPECT_EQ(describe(stats)[1], "distinct-2: 0.400");
}

TEST(OutputStats, ShortTextsRepeatNothing) {
  for (const std::vector<uint32_t>& ids : {std::vector<uint32_t>{}, {7}, {7, 8, 9}}) {
    const OutputStats stats = output_stats(ids, std::vector<float>(ids.size(), -2));
    for (const double share : stats.distinct) EXPECT_EQ(share, 1);
    EXPECT_EQ(stats.repetition, 0);
    EXPECT_EQ(stats.surprisal, ids.empty() ? 0 : 2);
  }
}

}  // namespace
}  // namespace hearth
