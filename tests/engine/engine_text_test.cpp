// The text of requests, on the stand-in executor: stop strings, end tokens, what is held back.
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/text/tokenizer.h"
#include "tests/support/stand_in_engine.h"

namespace hearth::testing {
namespace {

constexpr SchedulerLimits kTextLimits{
    .max_sequences = 4, .max_step_tokens = 32, .context = 128, .pool_blocks = 64, .max_queue = 5};

// <unk>, <s>, </s>, then single letters from 'a' on.
class EngineTextTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Vocabulary vocabulary{.kind = VocabularyKind::kSentencePiece};
    vocabulary.tokens.push_back({.text = "<unk>", .kind = TokenKind::kUnknown});
    vocabulary.tokens.push_back({.text = "<s>", .kind = TokenKind::kControl});
    vocabulary.tokens.push_back({.text = "</s>", .kind = TokenKind::kControl});
    for (char letter = 'a'; letter <= 'z'; ++letter)
      vocabulary.tokens.push_back({.text = std::string(1, letter), .score = -letter * 1.0f});
    vocabulary.unknown = 0;
    vocabulary.eos = 2;
    vocabulary.end_of_generation = {2};
    auto tokenizer = Tokenizer::create(std::move(vocabulary));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    tokenizer_ = std::move(tokenizer).value();
  }

  // An engine that generates these letters; '.' is </s>.
  StandInEngine says(const std::string& text) {
    StandInOptions options{.limits = kTextLimits, .vocabulary = 29};
    for (const char letter : text)
      options.script.push_back(letter == '.' ? 2u : static_cast<TokenId>(letter - 'a') + 3);
    return StandInEngine(std::move(options), {}, tokenizer_.get());
  }
  TokenStream submit(StandInEngine& engine, GenerationRequest request) {
    auto stream = engine->submit(std::move(request));
    EXPECT_TRUE(stream.ok()) << stream.error().message;
    return std::move(stream).value();
  }
  struct Said {
    std::string text;
    GenerationEnd end;
  };
  Said ask(StandInEngine&& engine, GenerationRequest request) {
    request.prompt = {3, 4};
    TokenStream stream = submit(engine, std::move(request));
    Said said{.text = read_text(stream)};
    said.end = stream.end();
    return said;
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_F(EngineTextTest, StopStringsSpanTokens) {
  Said said = ask(says("onestopmore"), {.max_tokens = 11, .stop = {"stop"}});
  EXPECT_EQ(said.text, "one");
  EXPECT_EQ(said.end.reason, FinishReason::kStop);
  EXPECT_EQ(said.end.generated_tokens, 7u);
  // The first of several stop strings; the partial match of another is not lost.
  said = ask(says("onestopmore"), {.max_tokens = 11, .stop = {"stopx", "opm", "more"}});
  EXPECT_EQ(said.text, "onest");
  said = ask(says("abcab"), {.max_tokens = 5, .stop = {"abd"}});
  EXPECT_EQ(said.text, "abcab") << "held back until the end";
  EXPECT_EQ(said.end.text, "ab");
  EXPECT_EQ(said.end.reason, FinishReason::kLength);
}

TEST_F(EngineTextTest, EndTokensEndARequest) {
  Said said = ask(says("ab.cd"), {.max_tokens = 5});
  EXPECT_EQ(said.text, "ab");
  EXPECT_EQ(said.end.reason, FinishReason::kStop);
  EXPECT_EQ(said.end.generated_tokens, 3u);
  said = ask(says("ab.cd"), {.max_tokens = 5, .ignore_end = true});
  EXPECT_EQ(said.text, "abcd");
  EXPECT_EQ(said.end.reason, FinishReason::kLength);
}

TEST_F(EngineTextTest, ACancelledRequestDeliversHeldBackText) {
  StandInEngine engine = says("abcabcabcabc");
  engine->pause();
  TokenStream stream = submit(engine, {.prompt = {3}, .max_tokens = 100, .stop = {"abcd"}});
  for (int i = 0; i < 2; ++i) engine->step_once();
  ASSERT_TRUE(comes_true([&] { return engine->metrics().generated_tokens.value() == 2; }));
  engine->cancel(stream.request());
  EXPECT_EQ(read_text(stream), "ab");
}

}  // namespace
}  // namespace hearth::testing
