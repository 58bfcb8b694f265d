#include "engine/ranks/link_timing.h"

#include <thread>

#include <gtest/gtest.h>

#include "engine/ranks/in_process_link.h"
#include "params/attention.h"

namespace hearth::testing {
namespace {

TEST(LinkTiming, TimesEverySizeAndLetsTheOtherRankEnd) {
  const auto links = make_in_process_links(2);
  std::thread other([&] { EXPECT_TRUE(echo_link(*links[1]).ok()); });
  const auto timings = time_link(*links[0], {64, 4096}, 3);
  other.join();
  ASSERT_TRUE(timings.ok());
  ASSERT_EQ(timings->size(), 2u);
  EXPECT_EQ((*timings)[1].bytes, 4096u);
  for (const LinkTiming& timing : *timings) EXPECT_GT(timing.seconds, 0);
}

TEST(LinkTiming, SizesInBetweenAreInterpolated) {
  const std::vector<LinkTiming> timings{{0, 1}, {100, 2}, {1100, 3}};
  EXPECT_DOUBLE_EQ(message_seconds(timings, 50), 1.5);
  EXPECT_DOUBLE_EQ(message_seconds(timings, 100), 2);
  EXPECT_DOUBLE_EQ(message_seconds(timings, 600), 2.5);
  EXPECT_DOUBLE_EQ(message_seconds(timings, 2100), 4);
}

TEST(LinkTiming, ASumAfterEveryHalfLayerCostsMuchMoreThanOneHop) {
  const std::vector<LinkTiming> timings{{0, 50e-6}, {1 << 20, 50e-6}};
  const SplitCost cost =
      split_cost(timings, {.rows = 1, .width = 4096, .layers = 32, .vocabulary = 32000});
  EXPECT_DOUBLE_EQ(cost.pipeline_seconds, 50e-6);
  EXPECT_DOUBLE_EQ(cost.tensor_seconds, 66 * 50e-6);  // and the embedding's, and the logits
  EXPECT_DOUBLE_EQ(cost.tensor_pays_above(), 132 * 50e-6);
}

// Each head has its result and what merging needs.
TEST(LinkTiming, ASequenceSplitMergesAttentionOncePerLayer) {
  const std::vector<LinkTiming> timings{{0, 0}, {1 << 20, 1 << 20}};  // a second per byte
  const SplitCost cost =
      split_cost(timings, {.rows = 3, .width = 64, .layers = 5, .heads = 4, .head_size = 32});
  EXPECT_DOUBLE_EQ(cost.sequence_seconds, 5 * 3 * 4 * (32 + params::kAttentionStats) * 4.0);
  EXPECT_DOUBLE_EQ(cost.sequence_pays_above(), 2 * cost.sequence_seconds);
}

}  // namespace
}  // namespace hearth::testing
