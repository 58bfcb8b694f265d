#include "engine/grammar/matcher.h"

#include <thread>

#include <gtest/gtest.h>

#include "tests/engine/grammar/grammar_texts.h"

namespace hearth::grammar {
namespace {

using testing::compiled;
using testing::kEndToken;
using testing::small_trie;

std::shared_ptr<const Grammar> person() {
  return compiled(Grammar::compile_json_schema(
      R"({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
          "required": ["name", "age"], "additionalProperties": false})",
      {.max_whitespace = 0}));
}

TokenId token(std::string_view bytes) {
  for (TokenId id = 0; id < small_trie()->vocabulary_size(); ++id)
    if (small_trie()->bytes(id) == bytes) return id;
  ADD_FAILURE() << "no token " << bytes;
  return 0;
}

TEST(Matcher, EndTokensOnlyWhereTheTextMayEnd) {
  Matcher matcher(person(), small_trie());
  EXPECT_FALSE(matcher.accept(kEndToken));
  ASSERT_TRUE(matcher.accept_bytes(R"({"name":"x","age":7})"));
  std::vector<std::uint32_t> mask(small_trie()->mask_words());
  matcher.mask(mask);
  EXPECT_EQ(mask[0], 1u << kEndToken);
  EXPECT_TRUE(matcher.may_end());
  EXPECT_TRUE(matcher.accept(kEndToken));
  EXPECT_TRUE(matcher.ended());
  EXPECT_FALSE(matcher.accept(kEndToken));
  matcher.mask(mask);
  for (const std::uint32_t word : mask) EXPECT_EQ(word, 0u);
}

TEST(Matcher, ControlTokensAreNeverText) {
  Matcher matcher(compiled(Grammar::compile_regex(".*")), small_trie());
  EXPECT_FALSE(matcher.accept(1));
  EXPECT_FALSE(matcher.accept(1'000'000));
}

TEST(Matcher, RollbackAndCopiesGoBackExactly) {
  Matcher matcher(person(), small_trie());
  std::vector<std::uint32_t> before(small_trie()->mask_words()), after(before);
  ASSERT_TRUE(matcher.accept(token("{\"")));
  matcher.mask(before);
  Matcher copy = matcher;
  ASSERT_TRUE(matcher.accept(token("name")));
  ASSERT_TRUE(matcher.accept(token("\":")));
  EXPECT_EQ(matcher.accepted(), 3u);
  matcher.rollback(2);
  matcher.mask(after);
  EXPECT_EQ(before, after);
  copy.mask(after);
  EXPECT_EQ(before, after);
  EXPECT_FALSE(copy.accept(token("true")));
  EXPECT_EQ(copy.accepted(), 1u);
}

TEST(Matcher, ForcedBytesAreTheOnlyContinuation) {
  Matcher matcher(person(), small_trie());
  EXPECT_EQ(matcher.forced(), "{\"name\":\"");
  ASSERT_TRUE(matcher.accept_bytes("{\"name\":\"x\""));
  EXPECT_EQ(matcher.forced(), ",\"age\":");
  ASSERT_TRUE(matcher.accept_bytes(",\"age\":7"));
  EXPECT_EQ(matcher.forced(), "");
  ASSERT_TRUE(matcher.accept_bytes("}"));
  EXPECT_EQ(matcher.forced(), "");
}

TEST(Matcher, ForcedTokensStopWhereALongerTokenFits) {
  // "ab" is forced, but "abc" is a token as well and fits: the model has to choose.
  Matcher matcher(compiled(Grammar::compile_regex("xyab(c|d)")), small_trie());
  const auto encode = [&](std::string_view text) {
    EXPECT_EQ(text, "xyab");
    return std::vector<TokenId>{token("xy"), token("ab")};
  };
  EXPECT_EQ(matcher.forced_tokens(encode), std::vector<TokenId>{token("xy")});
}

TEST(Matcher, Choice) {
  const std::vector<std::string> choices = {"red", "green", "re"};
  const auto grammar = compiled(Grammar::compile_choice(choices));
  EXPECT_TRUE(testing::accepts(grammar, "re"));
  EXPECT_TRUE(testing::accepts(grammar, "green"));
  EXPECT_FALSE(testing::accepts(grammar, "gre"));
  EXPECT_FALSE(Grammar::compile_choice({}).ok());
}

TEST(Matcher, LongTextsAreReleasedWithoutRecursion) {
  Matcher matcher(compiled(Grammar::compile_regex("[a-z]*")), small_trie());
  for (int i = 0; i < 300'000; ++i) ASSERT_TRUE(matcher.accept(token("a")));
  matcher.rollback(299'999);
  EXPECT_EQ(matcher.accepted(), 1u);
}

TEST(Matcher, ThreadsShareAGrammar) {
  const auto grammar = person();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      std::vector<std::uint32_t> mask(small_trie()->mask_words());
      for (int round = 0; round < 20; ++round) {
        Matcher matcher(grammar, small_trie());
        for (const char c : std::string_view(R"({"name":"Ada","age":36})")) {
          matcher.mask(mask);
          EXPECT_TRUE(matcher.accept(2 + static_cast<unsigned char>(c)));
        }
        EXPECT_TRUE(matcher.may_end());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hearth::grammar
