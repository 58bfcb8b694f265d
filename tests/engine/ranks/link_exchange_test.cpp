#include "engine/ranks/link_exchange.h"

#include <cmath>
#include <functional>
#include <span>
#include <thread>

#include <gtest/gtest.h>

#include "engine/ranks/in_process_link.h"
#include "engine/weights/half.h"
#include "params/attention.h"

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

// Every rank adds up a part of many rows; the parts are not of the same size.
TEST(LinkExchange, TheSumOfManyRowsIsDividedOverTheRanks) {
  const std::vector<float> parts{1e8f, 1, -1e8f, 2};
  const size_t size = (16 << 18) + 5;  // 16 MiB, and a little
  on_ranks(4, [&](uint32_t rank, LinkExchange& exchange) {
    std::vector<float> own(size, parts[rank]);
    for (size_t i = 0; i < size; i += 1000) own[i] = static_cast<float>(i);
    std::vector<float> total(size, -1.0f);
    for (int repetition = 0; repetition < 2; ++repetition) {
      ASSERT_TRUE(exchange.sum(own, total).ok());
      for (size_t i = 0; i < size; ++i)
        ASSERT_EQ(total[i], i % 1000 == 0 ? 4 * static_cast<float>(i) : 2.0f) << i;
    }
  });
}

// 5 rows of 2: rank 0 has one, the others have two each.
TEST(LinkExchange, EachRankGetsTheSumOfItsOwnRows) {
  on_ranks(3, [](uint32_t rank, LinkExchange& exchange) {
    std::vector<float> own(10);
    for (size_t i = 0; i < own.size(); ++i) own[i] = static_cast<float>(i * 10 + rank);
    std::vector<float> total(rank == 0 ? 2 : 4);
    for (int repetition = 0; repetition < 2; ++repetition) {
      ASSERT_TRUE(exchange.sum_own(own, 5, total).ok());
      const size_t first = rank == 0 ? 0 : rank == 1 ? 2 : 6;
      for (size_t i = 0; i < total.size(); ++i)
        EXPECT_EQ(total[i], static_cast<float>((first + i) * 30 + 3)) << "rank " << rank;
    }
  });
}

// Rank 1's products read f16, those of the others f32.
TEST(LinkExchange, GathersRowsInTheFormThatEachRankReads) {
  on_ranks(3, [](uint32_t rank, LinkExchange& exchange) {
    const std::vector<size_t> firsts{0, 2, 6, 10};
    std::vector<float> floats;
    for (size_t i = firsts[rank]; i < firsts[rank + 1]; ++i)
      floats.push_back(static_cast<float>(i) + 0.5f);
    std::vector<uint16_t> halves;
    for (const float value : floats) halves.push_back(float_to_half(value));
    std::vector<float> all_floats(10);
    std::vector<uint16_t> all_halves(10);
    if (rank == 1) {
      ASSERT_TRUE(exchange
                      .gather(std::as_bytes(std::span(halves)), 5, 2,
                              std::as_writable_bytes(std::span(all_halves)))
                      .ok());
      for (size_t i = 0; i < 10; ++i) all_floats[i] = half_to_float(all_halves[i]);
    } else {
      ASSERT_TRUE(exchange
                      .gather(std::as_bytes(std::span(floats)), 5, 2,
                              std::as_writable_bytes(std::span(all_floats)))
                      .ok());
    }
    for (size_t i = 0; i < 10; ++i) EXPECT_EQ(all_floats[i], static_cast<float>(i) + 0.5f) << i;
  });
}

TEST(LinkExchange, GatheredRowsOfTheWrongSizeAreAnError) {
  on_ranks(2, [](uint32_t rank, LinkExchange& exchange) {
    const std::vector<float> own(rank == 0 ? 4 : 5);
    std::vector<float> all(8);
    EXPECT_FALSE(
        exchange.gather(std::as_bytes(std::span(own)), 4, 2, std::as_writable_bytes(std::span(all)))
            .ok());
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

// Sums of 2^(score - max) * value over a rank's keys, as attention leaves them.
std::vector<float> sums_of(const std::vector<std::pair<float, std::vector<float>>>& keys) {
  std::vector<float> sums(2 + params::kAttentionStats, 0.0f);
  if (keys.empty()) return sums;
  sums[2] = keys.front().first;
  for (const auto& [score, value] : keys) sums[2] = std::max(sums[2], score);
  for (const auto& [score, value] : keys) {
    const float weight = std::exp2(score - sums[2]);
    for (size_t i = 0; i < 2; ++i) sums[i] += weight * value[i];
    sums[3] += weight;
  }
  return sums;
}

// As if one rank had all keys. Scores are far apart, and some ranks have no keys.
TEST(LinkExchange, MergesAttentionToTheKeysOfAllRanks) {
  using Keys = std::vector<std::pair<float, std::vector<float>>>;
  const std::vector<std::vector<Keys>> heads = {
      {{{3.0f, {1, 2}}, {1.0f, {5, -1}}}, {{2.0f, {-4, 0.5f}}}, {}},
      {{}, {{-900.0f, {1, 2}}}, {{-903.0f, {3, 4}}, {-1000.0f, {7, 7}}}},
      {{{400.0f, {1, 1}}}, {{-400.0f, {9, 9}}}, {{399.0f, {2, 2}}}},
      {{}, {}, {{5.0f, {6, 7}}}},
      {{}, {}, {}}};
  for (const uint32_t ranks : {2u, 3u})
    on_ranks(ranks, [&](uint32_t rank, LinkExchange& exchange) {
      std::vector<float> own, all(2 * heads.size(), -1.0f);
      for (const std::vector<Keys>& head : heads) {
        const std::vector<float> sums = sums_of(head[rank]);
        own.insert(own.end(), sums.begin(), sums.end());
      }
      ASSERT_TRUE(exchange.merge(own, 2, all).ok());
      for (size_t head = 0; head < heads.size(); ++head) {
        Keys keys;
        for (uint32_t other = 0; other < ranks; ++other)
          keys.insert(keys.end(), heads[head][other].begin(), heads[head][other].end());
        const std::vector<float> together = sums_of(keys);
        for (size_t i = 0; i < 2; ++i) {
          const float expected = together[3] > 0 ? together[i] / together[3] : 0.0f;
          EXPECT_NEAR(all[2 * head + i], expected, 1e-5) << "head " << head << " on rank " << rank;
        }
      }
    });
}

// The others go on at once, and get nothing.
TEST(LinkExchange, TheLastRankAloneMerges) {
  on_ranks(3, [](uint32_t rank, LinkExchange& exchange) {
    const std::vector<float> sums =
        sums_of({{static_cast<float>(rank), {1.0f + static_cast<float>(rank), 2}}});
    std::vector<float> together(2), alone(rank == 2 ? 2 : 0), total(2);
    for (int repetition = 0; repetition < 2; ++repetition) {
      ASSERT_TRUE(exchange.merge(sums, 2, together).ok());
      ASSERT_TRUE(exchange.merge(sums, 2, alone, true).ok());
      if (rank == 2) {
        EXPECT_EQ(alone, together);
      }
      ASSERT_TRUE(exchange.sum(std::vector<float>(2, 1.0f), total).ok());
      EXPECT_EQ(total, std::vector<float>(2, 3.0f));
    }
  });
}

TEST(LinkExchange, BlocksGoFromRankToRank) {
  on_ranks(3, [](uint32_t rank, LinkExchange& exchange) {
    const std::vector<float> own(2, 1.0f);
    std::vector<float> total(2);
    ASSERT_TRUE(exchange.sum(own, total).ok());
    const auto block_of = [](uint32_t from) {
      return std::vector<std::byte>(24, static_cast<std::byte>(0xc0 + from));
    };
    ASSERT_TRUE(exchange.send_block((rank + 1) % 3, block_of(rank)).ok());
    const auto block = exchange.receive_block((rank + 2) % 3);
    ASSERT_TRUE(block.ok()) << block.error().message;
    EXPECT_EQ(*block, block_of((rank + 2) % 3));
    ASSERT_TRUE(exchange.sum(own, total).ok());
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
