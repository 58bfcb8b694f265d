// Which words are taken for typing mistakes of which others.
#include "engine/near_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(NearWords, DistanceCountsLetters) {
  EXPECT_EQ(edit_distance("run", "run"), 0u);
  EXPECT_EQ(edit_distance("", "run"), 3u);
  EXPECT_EQ(edit_distance("rn", "run"), 1u);
  EXPECT_EQ(edit_distance("runn", "run"), 1u);
  EXPECT_EQ(edit_distance("ran", "run"), 1u);
  EXPECT_EQ(edit_distance("rnu", "run"), 1u);  // swapped
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(NearWords, FindsTypingMistakes) {
  const std::vector<std::string> commands = {"bench", "chat", "dash", "run", "serve", "story"};
  EXPECT_THAT(near_words("rnu", commands), ElementsAre("run"));
  EXPECT_THAT(near_words("servve", commands), ElementsAre("serve"));
  EXPECT_THAT(near_words("Serv", commands), ElementsAre("serve"));
  EXPECT_THAT(near_words("dashboard", commands), ElementsAre("dash"));
  EXPECT_THAT(near_words("stoy-teller", commands), IsEmpty());
  EXPECT_THAT(near_words("frobnicate", commands), IsEmpty());
  EXPECT_THAT(near_words("", commands), IsEmpty());
  EXPECT_THAT(near_words(std::string(100000, 'x'), commands), IsEmpty());
}

TEST(NearWords, DashesDoNotCount) {
  const std::vector<std::string> options = {"--temp", "--top-k", "--top-p", "-n", "--tokens"};
  EXPECT_THAT(near_words("--temprature", options), ElementsAre("--temp"));
  EXPECT_THAT(near_words("--topk", options), ElementsAre("--top-k"));
  EXPECT_THAT(near_words("--token", options), ElementsAre("--tokens"));
  EXPECT_THAT(near_words("-x", options), IsEmpty());
}

TEST(NearWords, TheNearestComeFirstAndNotTooMany) {
  const std::vector<std::string> names = {"qwen-large", "qwen-lodge", "gemma-qwen", "qwen-larger"};
  EXPECT_THAT(near_words("qwen-larg", names), ElementsAre("qwen-large"));
  EXPECT_THAT(near_words("wen-l", names, 2), ElementsAre("qwen-large", "qwen-lodge"));
  EXPECT_THAT(near_words("qewn", names),
              ElementsAre("qwen-large", "qwen-lodge", "qwen-larger"));  // begins with a typo
}

TEST(NearWords, AsAQuestion) {
  const std::vector<std::string> words = {"a", "b", "c"};
  EXPECT_EQ(did_you_mean({}), "");
  EXPECT_EQ(did_you_mean(std::span(words).first(1)), "; did you mean a?");
  EXPECT_EQ(did_you_mean(std::span(words).first(2)), "; did you mean a or b?");
  EXPECT_EQ(did_you_mean(words), "; did you mean a, b or c?");
}

}  // namespace
}  // namespace hearth
