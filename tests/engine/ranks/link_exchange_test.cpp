#include "engine/ranks/link_exchange.h"

#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "engine/ranks/in_process_link.h"

namespace hearth::testing {
namespace {

// Calls run(rank, exchange) on a thread per rank.
void on_ranks(uint32_t ranks, const std::function<void(uint32_t, LinkExchange&)>& run) {
  const auto links = make_in_process_links(ranks);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      LinkExchange exchange(*links[rank]);
      run(rank, exchange);
    });
  for (std::thread& thread : threads) thread.join();
}

// (1e8 + 1) - 1e8 is 0 in f32, and (1e8 - 1e8) + 1 is 1: the order shows.
TEST(LinkExchange, AddsUpInTheOrderOfRanks) {
  for (const auto& [parts, expected] : std::vector<std::pair<std::vector<float>, float>>{
           {{1e8f, 1, -1e8f}, 0}, {{1e8f, -1e8f, 1}, 1}, {{1, 2}, 3}, {{1, 2, 4, 8}, 15}})
    on_ranks(static_cast<uint32_t>(parts.size()), [&](uint32_t rank, LinkExchange& exchange) {
      for (int repetition = 0; repetition < 3; ++repetition) {
        const std::vector<float> own(5, parts[rank]);
        std::vector<float> total(5);
        ASSERT_TRUE(exchange.sum(own, total).ok());
        EXPECT_EQ(total, std::vector<float>(5, expected)) << "rank " << rank;
      }
    });
}

TEST(LinkExchange, JoinsColumnsOfDifferentWidthsOnTheLastRank) {
  on_ranks(3, [](uint32_t rank, LinkExchange& exchange) {
    const std::vector<std::vector<float>> parts = {{1, 4}, {2, 3, 5, 6}, {7, 8}};  // 2 rows each
    std::vector<float> all(rank == 2 ? 8 : 0);
    ASSERT_TRUE(exchange.join(parts[rank], 2, all).ok());
    if (rank == 2) {
      EXPECT_EQ(all, (std::vector<float>{1, 2, 3, 7, 4, 5, 6, 8}));
    }
  });
}

TEST(LinkExchange, ColumnsThatDoNotAddUpAreAnError) {
  for (const size_t width : {3, 5})
    on_ranks(2, [&](uint32_t rank, LinkExchange& exchange) {
      const std::vector<float> own(2);
      std::vector<float> all(rank == 1 ? width : 0);
      EXPECT_EQ(exchange.join(own, 1, all).ok(), rank == 0);
    });
}

TEST(LinkExchange, RowsOfDifferentSizesAreAnError) {
  on_ranks(2, [](uint32_t rank, LinkExchange& exchange) {
    const std::vector<float> own(rank == 0 ? 4 : 6);
    std::vector<float> total(own.size());
    EXPECT_FALSE(exchange.sum(own, total).ok());
  });
}

TEST(LinkExchange, ARankThatGivesUpTellsTheOthersWhy) {
  on_ranks(3, [](uint32_t rank, LinkExchange& exchange) {
    const std::vector<float> own(2, 1.0f);
    std::vector<float> total(2);
    ASSERT_TRUE(exchange.sum(own, total).ok());
    if (rank == 1) return exchange.give_up({ErrorKind::kOutOfMemory, "no room"});
    const Status status = exchange.sum(own, total);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, "no room");
  });
}

// A rank that leaves a step out would add the next one's rows to this one's.
TEST(LinkExchange, RanksThatDisagreeAboutTheOrderNotice) {
  on_ranks(2, [](uint32_t rank, LinkExchange& exchange) {
    const std::vector<float> own(2, 1.0f);
    std::vector<float> total(2);
    // Rank 0 only sends its columns and continues, while rank 1 begins with the sum.
    if (rank == 0) {
      ASSERT_TRUE(exchange.join(own, 1, {}).ok());
      EXPECT_FALSE(exchange.sum(own, total).ok());
    } else {
      static_cast<void>(exchange.sum(own, total).ok());
    }
  });
}

}  // namespace
}  // namespace hearth::testing
