#include "engine/ranks/link_timing.h"

#include <array>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "engine/ranks/in_process_link.h"
#include "params/attention.h"

namespace hearth::testing {
namespace {

TEST(LinkTiming, TimesEverySizeAndLetsTheOtherRankEnd) {
  const auto links = make_in_process_links(2);
  std::thread other([&] { EXPECT_TRUE(help_time_links(*links[1]).ok()); });
  const auto timings = time_links(*links[0], {64, 4096}, 3);
  other.join();
  ASSERT_TRUE(timings.ok());
  ASSERT_EQ(timings->size(), 2u);
  EXPECT_EQ((*timings)[1].bytes, 4096u);
  for (const LinkTiming& timing : *timings) EXPECT_GT(timing.seconds, 0);
}

// A link whose messages between ranks 1 and 2 take longer.
class LinkWithASlowPair final : public Link {
 public:
  static constexpr std::chrono::milliseconds kDelay{20};

  explicit LinkWithASlowPair(std::unique_ptr<Link> link) : link_(std::move(link)) {}

  uint32_t rank() const override { return link_->rank(); }
  uint32_t ranks() const override { return link_->ranks(); }
  Status send(uint32_t to, Channel channel, Message message) override {
    if (rank() + to == 3 && rank() > 0 && to > 0) std::this_thread::sleep_for(kDelay);
    return link_->send(to, channel, std::move(message));
  }
  Result<Message> receive(uint32_t from, Channel channel) override {
    return link_->receive(from, channel);
  }
  void watch_closely(Channel channel) override { link_->watch_closely(channel); }
  bool ready(uint32_t from, Channel channel) override { return link_->ready(from, channel); }
  void fail(const std::string& reason) override { link_->fail(reason); }

 private:
  std::unique_ptr<Link> link_;
};

TEST(LinkTiming, TheSlowestPairCountsEvenIfRank0IsNotOneOfIt) {
  std::vector<std::unique_ptr<Link>> links;
  for (auto& link : make_in_process_links(4))
    links.push_back(std::make_unique<LinkWithASlowPair>(std::move(link)));
  std::vector<std::thread> others;
  for (size_t rank = 1; rank < links.size(); ++rank)
    others.emplace_back([&, rank] { EXPECT_TRUE(help_time_links(*links[rank]).ok()); });
  const auto timings = time_links(*links[0], {64, 1024}, 5);
  for (std::thread& other : others) other.join();
  ASSERT_TRUE(timings.ok());
  ASSERT_EQ(timings->size(), 2u);
  for (const LinkTiming& timing : *timings) {
    EXPECT_EQ(timing.ranks, (std::array<uint32_t, 2>{1, 2}));
    EXPECT_GE(timing.seconds, std::chrono::duration<double>(LinkWithASlowPair::kDelay).count());
  }
}

// A rank that is lost while others are timed ends the timing everywhere.
TEST(LinkTiming, ALostRankEndsIt) {
  const auto links = make_in_process_links(3);
  std::thread first([&] { EXPECT_FALSE(help_time_links(*links[1]).ok()); });
  std::thread second([&] {
    EXPECT_TRUE(links[2]->receive(0, Channel::kCommands).ok());
    links[2]->fail("rank 2 was lost");
  });
  const auto timings = time_links(*links[0], {64}, 1);
  first.join();
  second.join();
  ASSERT_FALSE(timings.ok());
  EXPECT_EQ(timings.error().message, "rank 2 was lost");
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
