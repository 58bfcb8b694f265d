#include "engine/decoding/speculation/shared_ngrams.h"

#include <random>

#include <gtest/gtest.h>

namespace hearth {
namespace {

using SharedTokens = std::vector<std::uint32_t>;

SharedTokens shared_guess(const SharedNgrams& table, std::uint32_t owner, const SharedTokens& text,
                          std::uint32_t most) {
  SharedTokens tokens;
  table.follow(table.find(owner, text), most, tokens);
  return tokens;
}

TEST(SharedNgrams, ProposesWhatFollowedInAnotherOutput) {
  SharedNgrams table({.tokens = 64, .min_match = 3});
  table.add(1, SharedTokens{10, 11, 12, 13, 14, 15});
  EXPECT_EQ(shared_guess(table, 1, {9, 10, 11, 12}, 2), (SharedTokens{13, 14}));
  EXPECT_EQ(shared_guess(table, 1, {11, 12, 13}, 8), (SharedTokens{14, 15}));
  EXPECT_EQ(shared_guess(table, 1, {9, 11, 12}, 8), SharedTokens{}) << "two equal tokens";
  EXPECT_EQ(shared_guess(table, 1, {13, 14, 15}, 8), SharedTokens{}) << "nothing follows";
  EXPECT_EQ(shared_guess(table, 1, {11, 12}, 8), SharedTokens{}) << "too short";
}

// A guess from another client's answer would show in the time that this one takes.
TEST(SharedNgrams, FindsNothingOfAnotherOwner) {
  SharedNgrams table({.tokens = 64, .min_match = 3});
  table.add(1, SharedTokens{10, 11, 12, 13});
  EXPECT_EQ(shared_guess(table, 2, {10, 11, 12}, 1), SharedTokens{});
  table.add(2, SharedTokens{10, 11, 12, 23});
  EXPECT_EQ(shared_guess(table, 2, {10, 11, 12}, 1), (SharedTokens{23}));
  EXPECT_EQ(shared_guess(table, 1, {10, 11, 12}, 1), (SharedTokens{13}));
}

// Equal hashes happen by chance; with sixteen buckets they happen all the time.
TEST(SharedNgrams, FindsNothingOfAnotherOwnerEvenIfHashesAreEqual) {
  SharedNgrams table({.tokens = 16, .min_match = 1});
  for (std::uint32_t owner = 2; owner < 40; ++owner) {
    table.add(owner, SharedTokens{5, owner});
    EXPECT_EQ(shared_guess(table, 1, {5}, 1), SharedTokens{}) << owner;
  }
}

TEST(SharedNgrams, PrefersTheLongestMatchAndThenTheLatest) {
  SharedNgrams table({.tokens = 64, .min_match = 2});
  table.add(0, SharedTokens{7, 1, 2, 30});
  table.add(0, SharedTokens{8, 1, 2, 40});
  table.add(0, SharedTokens{9, 1, 2, 50});
  EXPECT_EQ(shared_guess(table, 0, {7, 1, 2}, 1), (SharedTokens{30}));
  EXPECT_EQ(shared_guess(table, 0, {6, 1, 2}, 1), (SharedTokens{50}));
}

TEST(SharedNgrams, NeverContinuesFromOneOutputIntoTheNext) {
  SharedNgrams table({.tokens = 64, .min_match = 2});
  table.add(0, SharedTokens{1, 2, 3});
  table.add(0, SharedTokens{4, 5, 6});
  EXPECT_EQ(shared_guess(table, 0, {1, 2}, 8), (SharedTokens{3}));
  EXPECT_EQ(shared_guess(table, 0, {3, 4}, 8), SharedTokens{});
}

TEST(SharedNgrams, ForgetsTheOldestAndStaysAsLargeAsItWas) {
  SharedNgrams table({.tokens = 32, .min_match = 2});
  ASSERT_EQ(table.capacity(), 32u);
  // Each takes 8 of the 32 places, with the mark before it.
  const auto output = [](std::uint32_t number) {
    SharedTokens tokens;
    for (std::uint32_t i = 0; i < 7; ++i) tokens.push_back(100 * number + i);
    return tokens;
  };
  for (std::uint32_t number = 1; number <= 1000; ++number) {
    table.add(0, output(number));
    for (std::uint32_t age = 0; age < 6 && age < number; ++age) {
      const SharedTokens old = output(number - age);
      const SharedTokens expected = age < 4 ? SharedTokens{old[2]} : SharedTokens{};
      ASSERT_EQ(shared_guess(table, 0, {old[0], old[1]}, 1), expected) << number << ", " << age;
    }
  }
  EXPECT_EQ(table.capacity(), 32u);
}

TEST(SharedNgrams, KeepsTheEndOfAnOutputThatIsLongerThanTheTable) {
  SharedNgrams table({.tokens = 16, .min_match = 2});
  SharedTokens tokens(1000);
  for (std::uint32_t i = 0; i < 1000; ++i) tokens[i] = i;
  table.add(0, tokens);
  EXPECT_EQ(shared_guess(table, 0, {996, 997}, 8), (SharedTokens{998, 999}));
  EXPECT_EQ(shared_guess(table, 0, {10, 11}, 8), SharedTokens{});
}

// Against a plain search over all outputs that are certainly kept.
TEST(SharedNgrams, FindsTheLongestMatchOfAll) {
  std::mt19937 random(3);
  SharedNgrams table({.tokens = 4096, .min_match = 3, .max_match = 12});
  std::vector<SharedTokens> outputs;
  for (int i = 0; i < 20; ++i) {
    SharedTokens output(60);
    for (std::uint32_t& token : output) token = static_cast<std::uint32_t>(random() % 9);
    table.add(5, output);
    outputs.push_back(std::move(output));
  }
  for (int round = 0; round < 200; ++round) {
    const SharedTokens& from = outputs[random() % outputs.size()];
    const std::size_t end = 12 + random() % (from.size() - 12);
    const SharedTokens text(from.begin() + static_cast<std::ptrdiff_t>(end - 12),
                            from.begin() + static_cast<std::ptrdiff_t>(end));
    const SharedNgrams::Match match = table.find(5, text);
    ASSERT_GE(match.length, 3u);
    SharedTokens next;
    table.follow(match, 1, next);
    ASSERT_EQ(next.size(), 1u);
    bool is_there = false;
    for (const SharedTokens& output : outputs)
      for (std::size_t i = match.length; i < output.size(); ++i)
        is_there |= output[i] == next[0] &&
                    std::equal(text.end() - match.length, text.end(),
                               output.begin() + static_cast<std::ptrdiff_t>(i - match.length));
    EXPECT_TRUE(is_there);
  }
}

}  // namespace
}  // namespace hearth
