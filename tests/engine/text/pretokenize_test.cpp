// Where each pre-tokenizer splits, and that no text makes it slow.
#include "engine/text/pretokenize.h"

#include <chrono>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/text/vocabularies.h"

namespace hearth::testing {
namespace {

using ::testing::ElementsAre;
using Words = std::vector<std::string>;

std::unique_ptr<Pretokenizer> pretokenizer(std::string_view name) {
  auto made = Pretokenizer::create(name);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(made).value();
}

Words split(std::string_view name, std::string_view text) {
  Words words;
  pretokenizer(name)->split(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

std::vector<std::string> every_name() {
  std::vector<std::string> names;
  std::string list = pretokenizer_names();
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(", ", at), list.size());
    names.push_back(list.substr(at, end - at));
    at = end + 2;
  }
  return names;
}

TEST(Pretokenize, EachSplitsInItsOwnWay) {
  const std::string text = "I'LL pay 1234 €!!\n\n  ok";
  EXPECT_THAT(split("gpt-2", text),
              ElementsAre("I", "'", "LL", " pay", " 1234", " €!!", "\n\n ", " ok"));
  EXPECT_THAT(split("llama-bpe", text),
              ElementsAre("I", "'LL", " pay", " ", "123", "4", " €!!\n\n", " ", " ok"));
  EXPECT_THAT(split("qwen2", text),
              ElementsAre("I", "'LL", " pay", " ", "1", "2", "3", "4", " €!!\n\n", " ", " ok"));
  EXPECT_THAT(split("starcoder", text),
              ElementsAre("I", "'", "LL", " pay", " ", "1", "2", "3", "4", " €!!", "\n\n ", " ok"));
  EXPECT_THAT(split("falcon", text),
              ElementsAre("I", "'", "LL", " pay", " ", "123", "4", " €", "!!", "\n\n ", " ok"));
  EXPECT_THAT(split("deepseek-llm", "a b，c 12 語x \nq  "),
              ElementsAre("a", " b", "，", "c", " ", "12", " ", "語", "x", " ", "\n", "q", "  "));
  EXPECT_THAT(split("deepseek-coder", "a b, 12 語"),
              ElementsAre("a", " b", ",", " ", "1", "2", " ", "語"));
  EXPECT_THAT(split("deepseek-v3", "a.bc 1234 語"),
              ElementsAre("a", ".bc", " ", "123", "4", " ", "語"));
  EXPECT_THAT(split("tekken", "HelloWorld 12"), ElementsAre("Hello", "World", " ", "1", "2"));
  EXPECT_THAT(split("gpt-4o", text),
              ElementsAre("I'LL", " pay", " ", "123", "4", " €!!\n\n", " ", " ok"));
  EXPECT_THAT(split("gpt-4o", "HelloWorld it'S ÀÉclair_x//\n y"),
              ElementsAre("Hello", "World", " it'S", " ÀÉclair", "_x", "//\n", " y"));
  EXPECT_EQ(split("command-r", text), split("refact", text));
  EXPECT_EQ(split("mpt", text), split("gpt-2", text));
  EXPECT_EQ(split("phi", text), split("gpt-2", text));
}

TEST(Pretokenize, WhiteSpaceFollowsUnicode) {
  EXPECT_THAT(split("gpt-2", "a\u3000b"), ElementsAre("a", "\u3000", "b"));
  // U+180E is not white space, although PCRE counts it as such.
  EXPECT_THAT(split("gpt-2", "a \u180e!"), ElementsAre("a", " \u180e!"));
}

TEST(Pretokenize, InvalidBytesAreWordsOfTheirOwn) {
  EXPECT_THAT(split("gpt-2", "ab\xFF\xFE cd\xE2\x82"),
              ElementsAre("ab", "\xFF\xFE", " cd", "\xE2\x82"));
}

TEST(Pretokenize, EveryByteIsInOneWord) {
  std::mt19937 random(1);
  for (const std::string& name : every_name()) {
    for (int round = 0; round < 50; ++round) {
      std::string text;
      for (unsigned i = 0; i < random() % 100; ++i)
        text += round % 2 ? static_cast<char>(random() % 256) : " \n'sa1.\t"[random() % 8];
      std::string joined;
      for (const std::string& word : split(name, text)) {
        EXPECT_FALSE(word.empty());
        joined += word;
      }
      EXPECT_EQ(joined, text) << name;
    }
  }
}

TEST(Pretokenize, TimeGrowsWithTheText) {
  for (const std::string& name : every_name()) {
    for (const char* part : {" ", "\n", " \n", "a", "A", "1", "'", "\t ", "a ", "語", "!"}) {
      std::string text;
      while (text.size() < 200'000) text += part;
      const auto start = std::chrono::steady_clock::now();
      split(name, text + "x");
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      EXPECT_LT(taken.count(), 5) << name << " " << part;
    }
  }
}

TEST(Pretokenize, AnUnknownNameIsRefusedWithTheKnownOnes) {
  EXPECT_THAT(error_of(Pretokenizer::create("klingon")),
              ::testing::HasSubstr("known ones are gpt-2, phi"));
}

}  // namespace
}  // namespace hearth::testing
