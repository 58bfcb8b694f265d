// Text to ids and back: published cases with their exact ids, and the rules around them.
#include "engine/text/tokenizer.h"

#include <chrono>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/text/detokenizer.h"
#include "engine/text/utf8.h"
#include "tests/engine/text/vocabularies.h"

namespace hearth::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Ids = std::vector<std::uint32_t>;

std::unique_ptr<Tokenizer> tokenizer_of(Vocabulary vocabulary) {
  auto tokenizer = Tokenizer::create(std::move(vocabulary));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return std::move(tokenizer).value();
}

class Published : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    tokenizer_ = published(GetParam());
    if (!tokenizer_) GTEST_SKIP() << "no vocabulary " << GetParam() << " in ../shared";
  }
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(Published, EveryTextHasItsIdsAndRoundTrips) {
  const auto cases = published_cases(GetParam());
  ASSERT_GT(cases.size(), 40u);
  for (const auto& [text, ids] : cases) {
    EXPECT_EQ(tokenizer_->encode(text, {.add_bos = false}), ids) << text;
    EXPECT_EQ(tokenizer_->decode(ids), text);
  }
}

TEST_P(Published, AnyBytesRoundTrip) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    const auto length = random() % 200;
    for (unsigned i = 0; i < length; ++i)
      text += static_cast<char>(round % 3 == 0 ? random() % 256
                                               : " \nab\xF0\x9F\x98\x80\xE2"[random() % 10]);
    EXPECT_EQ(tokenizer_->decode(tokenizer_->encode(text, {.add_bos = false})), text);
  }
}

TEST_P(Published, StreamingNeverEmitsHalfACharacter) {
  std::string everything;
  for (const auto& one : published_cases(GetParam())) everything += one.text;
  everything += "😶‍🌫️ \xF0\x9F\x98 ok \xFF\xC3 end \xE2\x82";
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    // A text cut anywhere, even inside a character, and encoded in two parts.
    const std::size_t cut = random() % everything.size();
    auto ids = tokenizer_->encode(std::string_view(everything).substr(0, cut), {.add_bos = false});
    const auto rest =
        tokenizer_->encode(std::string_view(everything).substr(cut), {.add_bos = false});
    ids.insert(ids.end(), rest.begin(), rest.end());
    std::string whole = tokenizer_->decode(ids), streamed;
    Detokenizer stream(*tokenizer_, /*after_text=*/false);
    for (const std::uint32_t id : ids) {
      const std::string text = stream.push(id);
      ASSERT_EQ(utf8_valid_prefix(text), text.size());
      streamed += text;
    }
    streamed += stream.finish();
    // The same text, with U+FFFD for invalid bytes.
    std::string expected;
    for (std::string_view left = whole; !left.empty();) {
      const Utf8Step step = utf8_step(left);
      expected += step.kind == Utf8Step::Kind::kCharacter ? left.substr(0, step.bytes)
                                                          : kReplacementCharacter;
      left.remove_prefix(step.bytes);
    }
    EXPECT_EQ(streamed, expected);
  }
}

TEST_P(Published, OneRepeatedCharacterIsNotSlow) {
  for (const char* character : {"a", " ", "\n", "1", "=", "語"}) {
    std::string text;
    while (text.size() < 1'000'000) text += character;
    const auto start = std::chrono::steady_clock::now();
    const auto ids = tokenizer_->encode(text, {.add_bos = false});
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    // The goal is one second. This must catch quadratic time, which would be minutes, also on busy
    // machines and under sanitizers.
    EXPECT_LT(taken.count(), 20) << character;
    EXPECT_EQ(tokenizer_->decode(ids), text);
    text += "x";
    EXPECT_EQ(tokenizer_->decode(tokenizer_->encode(text, {.add_bos = false})), text);
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, Published,
                         ::testing::Values("gpt-2", "llama-spm", "llama-bpe"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(SpecialTokens, ControlTokensAreParsedOnlyOnRequest) {
  const auto tokenizer = tokenizer_of(small_byte_pair());
  EXPECT_THAT(tokenizer->encode("ab<|im_end|>c", {.parse_special = true}), ElementsAre(4, 7, 2));
  // As plain text its characters have no tokens in this vocabulary.
  const Ids plain = tokenizer->encode("ab<|im_end|>c");
  EXPECT_EQ(plain.size(), 12u);
  EXPECT_EQ(std::count(plain.begin(), plain.end(), 7u), 0);
}

TEST(SpecialTokens, AddedTokensAreAlwaysParsed) {
  const auto tokenizer = tokenizer_of(small_byte_pair());
  EXPECT_THAT(tokenizer->encode("a<think>b"), ElementsAre(0, 8, 1));
  EXPECT_EQ(tokenizer->decode(Ids{0, 8, 1}), "a<think>b");
}

TEST(SpecialTokens, TheLeftmostLongestTokenWins) {
  Vocabulary vocabulary = small_byte_pair();
  vocabulary.tokens.push_back({.text = "<|im", .kind = TokenKind::kControl});
  vocabulary.tokens.push_back({.text = "<|im_end|>c", .kind = TokenKind::kControl});
  const auto tokenizer = tokenizer_of(vocabulary);
  EXPECT_THAT(tokenizer->encode("<|im_end|>cb<|im_end|>b", {.parse_special = true}),
              ElementsAre(11, 1, 7, 1));
}

TEST(SpecialTokens, AbsorbAdjacentSpaceIfConfigured) {
  Vocabulary vocabulary = small_byte_pair();
  vocabulary.tokens[7].takes_space_after = true;
  const auto tokenizer = tokenizer_of(vocabulary);
  EXPECT_THAT(tokenizer->encode("a <|im_end|> \n a", {.parse_special = true}),
              ElementsAre(0, 3, 7, 0));
}

TEST(SpecialTokens, DecodeToNothingUnlessRequested) {
  const auto tokenizer = tokenizer_of(small_byte_pair());
  EXPECT_EQ(tokenizer->decode(Ids{0, 7, 1}), "ab");
  EXPECT_EQ(tokenizer->decode(Ids{0, 7, 1}, true), "a<|im_end|>b");
  EXPECT_EQ(tokenizer->piece(1'000'000, true), "");
}

TEST(Bos, IsAddedAsTheVocabularySaysAndNeverTwice) {
  const auto tokenizer = tokenizer_of(small_sentence_piece());
  EXPECT_EQ(tokenizer->encode("a").front(), 1u);
  EXPECT_THAT(tokenizer->encode("a", {.add_bos = false}), ElementsAre(259));
  EXPECT_THAT(tokenizer->encode("a", {.add_bos = false, .add_eos = true}), ElementsAre(259, 2));
  EXPECT_THAT(tokenizer->encode("<s>a", {.parse_special = true}), ElementsAre(1, 259));
  EXPECT_THAT(tokenizer->encode("<s><s>a", {.parse_special = true}), ElementsAre(1, 1, 259));
  EXPECT_THAT(tokenizer->encode(""), ElementsAre(1));
  Vocabulary none = small_sentence_piece();
  none.bos.reset();
  EXPECT_THAT(tokenizer_of(none)->encode("a", {.add_bos = true}), ElementsAre(259));
}

TEST(SentencePiece, MergesByScoreAndFallsBackToBytes) {
  Vocabulary vocabulary = small_sentence_piece();
  vocabulary.add_bos = false;
  const auto tokenizer = tokenizer_of(vocabulary);
  // "▁a" has a better score than "ab", so it is merged first, and then "▁ab" from it.
  EXPECT_THAT(tokenizer->encode("ab"), ElementsAre(261));
  EXPECT_THAT(tokenizer->encode("cab"), ElementsAre(264, 265, 260));
  EXPECT_THAT(tokenizer->encode("é"), ElementsAre(264, 3 + 0xC3, 3 + 0xA9));
  EXPECT_THAT(tokenizer->encode("\xFF"), ElementsAre(264, 3 + 0xFF));
}

TEST(SentencePiece, UnknownTokenIfThereAreNoBytes) {
  Vocabulary vocabulary = small_sentence_piece();
  vocabulary.add_bos = false;
  std::erase_if(vocabulary.tokens,
                [](const auto& token) { return token.kind == TokenKind::kByte; });
  EXPECT_THAT(tokenizer_of(vocabulary)->encode("é"), ElementsAre(8, 0));
}

TEST(SentencePiece, TheAddedSpaceIsNotPartOfTheText) {
  Vocabulary vocabulary = small_sentence_piece();
  vocabulary.add_bos = false;
  EXPECT_EQ(tokenizer_of(vocabulary)->decode(Ids{1, 259, 263}), "ab");
  EXPECT_EQ(tokenizer_of(vocabulary)->decode(Ids{264, 259, 263}), " ab");
  // After a special token, too, as is usual for such files.
  EXPECT_THAT(tokenizer_of(vocabulary)->encode("a</s>a", {.parse_special = true}),
              ElementsAre(259, 2, 259));
  vocabulary.space_prefix_once = true;
  EXPECT_THAT(tokenizer_of(vocabulary)->encode("a</s>a", {.parse_special = true}),
              ElementsAre(259, 2, 262));
  EXPECT_THAT(tokenizer_of(vocabulary)->encode(" a"), ElementsAre(264, 259));
  vocabulary.space_prefix_doubles = false;
  EXPECT_THAT(tokenizer_of(vocabulary)->encode(" a"), ElementsAre(259));
  vocabulary.space_prefix_once = false;
  EXPECT_THAT(tokenizer_of(vocabulary)->encode(" a</s> a", {.parse_special = true}),
              ElementsAre(259, 2, 259));
  vocabulary.add_space_prefix = false;
  EXPECT_THAT(tokenizer_of(vocabulary)->encode("a"), ElementsAre(262));
  EXPECT_EQ(tokenizer_of(vocabulary)->decode(Ids{259}), " a");
}

TEST(SentencePiece, TokensThatSpanWordsAreFound) {
  Vocabulary vocabulary = small_sentence_piece();
  vocabulary.add_bos = false;
  vocabulary.tokens.push_back({.text = "b\u2581", .score = 10});
  EXPECT_THAT(tokenizer_of(vocabulary)->encode("ab a"), ElementsAre(259, 266, 262));
}

TEST(BytePair, MergesByRank) {
  const auto tokenizer = tokenizer_of(small_byte_pair());
  EXPECT_THAT(tokenizer->encode("abc"), ElementsAre(5));
  EXPECT_THAT(tokenizer->encode("aabb"), ElementsAre(0, 4, 1));
  EXPECT_THAT(tokenizer->encode(" abc"), ElementsAre(3, 5));
  EXPECT_THAT(tokenizer->encode("bc"), ElementsAre(1, 2));
}

TEST(BytePair, AWholeWordIsOneTokenIfMergesAreIgnored) {
  Vocabulary vocabulary = small_byte_pair();
  vocabulary.tokens.push_back({.text = "bc"});
  EXPECT_THAT(tokenizer_of(vocabulary)->encode("bc"), ElementsAre(1, 2));
  vocabulary.ignore_merges = true;
  EXPECT_THAT(tokenizer_of(vocabulary)->encode("bc"), ElementsAre(10));
}

TEST(BytePair, NormalizesToNfcIfTheVocabularySaysSo) {
  Vocabulary vocabulary = small_byte_pair();
  vocabulary.tokens.push_back({.text = "\u00c3"});
  vocabulary.tokens.push_back({.text = "\u00a9"});
  EXPECT_THAT(tokenizer_of(vocabulary)->encode("e\u0301"), ElementsAre(9, 9, 9));
  vocabulary.normalize_nfc = true;
  EXPECT_THAT(tokenizer_of(vocabulary)->encode("e\u0301"), ElementsAre(10, 11));
}

TEST(NoVocabulary, HasNoText) {
  const auto tokenizer = tokenizer_of({});
  EXPECT_THAT(tokenizer->encode("text"), IsEmpty());
  EXPECT_EQ(tokenizer->decode(Ids{1, 2}), "");
}

TEST(BadVocabulary, IsReportedInOneLine) {
  const auto broken = [](auto change) {
    Vocabulary vocabulary = small_byte_pair();
    change(vocabulary);
    return error_of(Tokenizer::create(std::move(vocabulary)));
  };
  EXPECT_THAT(broken([](auto& v) { v.merges.push_back("a\nx"); }), HasSubstr("merge 3"));
  EXPECT_THAT(broken([](auto& v) { v.merges.push_back(" a"); }), HasSubstr("not two tokens"));
  EXPECT_THAT(broken([](auto& v) { v.merges.push_back("a "); }), HasSubstr("not two tokens"));
  EXPECT_THAT(broken([](auto& v) { v.merges.push_back(""); }), HasSubstr("not two tokens"));
  EXPECT_THAT(broken([](auto& v) { v.merges.push_back("a z"); }),
              HasSubstr("joins tokens that are not"));
  EXPECT_THAT(broken([](auto& v) { v.merges.push_back("c c"); }),
              HasSubstr("gives a token that is not"));
  EXPECT_THAT(broken([](auto& v) { v.tokens.push_back({.text = "ab"}); }), HasSubstr("twice"));
  EXPECT_THAT(broken([](auto& v) { v.bos = 100; }), HasSubstr("BOS token is 100"));
  EXPECT_THAT(broken([](auto& v) { v.end_of_generation = {100}; }), HasSubstr("100"));
  EXPECT_THAT(broken([](auto& v) { v.pretokenizer = "klingon"; }), HasSubstr("llama-bpe"));
  Vocabulary bytes = small_sentence_piece();
  bytes.tokens[5].text = "<0xZZ>";
  EXPECT_THAT(error_of(Tokenizer::create(bytes)), HasSubstr("<0xZZ>"));
}

}  // namespace
}  // namespace hearth::testing
