#include "engine/decoding/speculation/speculation.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

using Tokens = std::vector<std::uint32_t>;

constexpr SpeculationOptions kNgrams{.method = SpeculationMethod::kNgram, .max_proposed = 4};

TEST(Speculation, ProposesAtMostWhatItMay) {
  Speculation speculation(kNgrams, Tokens{1, 2, 3, 4, 5, 6, 7, 1, 2}, 100);
  EXPECT_TRUE(speculation.promising());
  const auto proposed = speculation.propose();
  EXPECT_EQ(Tokens(proposed.begin(), proposed.end()), (Tokens{3, 4, 5, 6}));
}

TEST(Speculation, GuessesOneMoreThanWasRight) {
  Speculation speculation(kNgrams, Tokens{1, 2, 3, 4, 5, 6, 7, 1, 2}, 100);
  speculation.judged(4, 1);
  EXPECT_EQ(speculation.propose().size(), 2u);
  speculation.judged(2, 2);
  EXPECT_EQ(speculation.propose().size(), 4u);
}

// It used to stop for good, because nothing counted the pause down.
TEST(Speculation, ResumesAfterFailures) {
  Speculation speculation(kNgrams, Tokens{1, 2, 1, 2}, 500);
  std::uint32_t pause = 1;
  for (int failure = 0; failure < 8; ++failure) {
    ASSERT_TRUE(speculation.promising()) << failure;
    speculation.judged(1, 0);
    pause = std::min(2 * pause, 32u);
    for (std::uint32_t i = 0; i < pause; ++i) {
      EXPECT_FALSE(speculation.promising());
      EXPECT_TRUE(speculation.propose().empty());
      speculation.append(Tokens{i % 2 + 1});
    }
  }
  speculation.judged(1, 1);
  speculation.judged(1, 0);
  speculation.append(Tokens{1, 2});
  EXPECT_TRUE(speculation.promising()) << "a success makes the next pause short again";
}

}  // namespace
}  // namespace hearth
