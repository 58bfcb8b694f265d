// Beam search with a grammar, on the stand-in executor: finds what a plain search finds that looks
// only at the tokens which the grammar allows.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/grammar_vocabulary.h"
#include "engine/text/tokenizer.h"
#include "tests/support/reference_beam.h"
#include "tests/support/stand_in_engine.h"

namespace hearth::testing {
namespace {

constexpr TokenId kLetterEnd = 2;

// <unk>, <s>, </s>, then the letters from 'a' on.
std::unique_ptr<Tokenizer> letter_tokenizer() {
  Vocabulary vocabulary{.kind = VocabularyKind::kSentencePiece};
  vocabulary.tokens.push_back({.text = "<unk>", .kind = TokenKind::kUnknown});
  vocabulary.tokens.push_back({.text = "<s>", .kind = TokenKind::kControl});
  vocabulary.tokens.push_back({.text = "</s>", .kind = TokenKind::kControl});
  for (char letter = 'a'; letter <= 'z'; ++letter)
    vocabulary.tokens.push_back({.text = std::string(1, letter), .score = -letter * 1.0f});
  vocabulary.unknown = 0;
  vocabulary.eos = kLetterEnd;
  vocabulary.end_of_generation = {kLetterEnd};
  return Tokenizer::create(std::move(vocabulary)).value();
}

class ConstrainedBeams : public ::testing::Test {
 protected:
  StandInEngine engine(const SchedulerLimits& limits = {.max_sequences = 8,
                                                        .max_step_tokens = 256,
                                                        .context = 256,
                                                        .pool_blocks = 400}) const {
    return StandInEngine({.limits = limits, .vocabulary = tokenizer_->size()}, {},
                         tokenizer_.get());
  }
  GenerationRequest request(const char* pattern, uint32_t seed, const BeamOptions& beam) const {
    GenerationRequest made{.prompt = made_up_prompt(4 + seed, seed), .max_tokens = 16};
    for (TokenId& id : made.prompt) id = 3 + id % 26;
    made.beam = beam;
    made.grammar = grammar::Grammar::compile_regex(pattern).value();
    return made;
  }
  std::vector<ReferenceText> expected(const StandInOptions& options,
                                      const GenerationRequest& request) const {
    const StandInSampler sampler(options);
    std::vector<ReferenceText> texts = ReferenceBeamSearch{request.beam, request.max_tokens, 1}.run(
        request.prompt,
        [&](const std::vector<TokenId>& tokens) {
          uint64_t read = 0;
          for (const TokenId token : tokens) read = StandInSampler::mix(read, token);
          grammar::Matcher matcher(request.grammar, trie_);
          for (size_t i = request.prompt.size(); i < tokens.size(); ++i) matcher.accept(tokens[i]);
          std::vector<std::pair<TokenId, double>> logprobs;
          for (const params::TokenLogprob& entry : sampler.top(read, options.vocabulary))
            if (matcher.allows(entry.id)) logprobs.emplace_back(entry.id, entry.logprob);
          return logprobs;
        },
        [](const std::vector<TokenId>& text) { return text.back() == kLetterEnd; });
    // Those that are only there to keep their number.
    std::erase_if(texts, [](const ReferenceText& text) { return text.score < -1e6; });
    return texts;
  }
  void expect_found(const StandInEngine& engine, const GenerationRequest& request,
                    std::vector<TokenStream>& streams) const {
    const std::vector<ReferenceText> texts = expected(engine.options(), request);
    ASSERT_FALSE(texts.empty());
    for (size_t i = 0; i < streams.size(); ++i) {
      const std::vector<TokenId> ids = read_ids(streams[i]);
      EXPECT_NE(streams[i].end().reason, FinishReason::kError) << streams[i].end().message;
      ASSERT_EQ(ids, i < texts.size() ? texts[i].tokens : std::vector<TokenId>()) << "text " << i;
      if (i < texts.size()) {
        EXPECT_NEAR(*streams[i].end().score, texts[i].score, 1e-4 * std::abs(texts[i].score));
      }
    }
  }

  std::unique_ptr<Tokenizer> tokenizer_ = letter_tokenizer();
  std::shared_ptr<const grammar::TokenTrie> trie_ = make_token_trie(*tokenizer_);
};

TEST_F(ConstrainedBeams, FindWhatTheGrammarAllows) {
  StandInEngine engine = this->engine();
  uint32_t number = 0;
  for (const char* const pattern : {"(ab|cd|e[f-z])*(x|yz)?", "[a-c]{3}([m-p]|qq){2,9}", "[a-z]*"})
    for (const uint32_t beams : {2u, 3u, 5u})
      for (const auto stopping : {EarlyStopping::kOff, EarlyStopping::kOn}) {
        SCOPED_TRACE(fmt::format("{} with {} beams", pattern, beams));
        const GenerationRequest asked =
            request(pattern, ++number, {.beams = beams, .early_stopping = stopping});
        auto streams = engine->submit_n(asked, beams);
        ASSERT_TRUE(streams.ok()) << streams.error().message;
        expect_found(engine, asked, *streams);
      }
}

// Fewer texts than beams: the rest stay empty.
TEST_F(ConstrainedBeams, EndWhereTheGrammarDoes) {
  StandInEngine engine = this->engine();
  auto streams = engine->submit_n(request("hi|ho", 1, {.beams = 4}), 3);
  ASSERT_TRUE(streams.ok()) << streams.error().message;
  std::vector<std::string> texts;
  for (TokenStream& stream : *streams) {
    texts.push_back(read_text(stream));
    EXPECT_EQ(stream.end().reason, FinishReason::kStop);
  }
  std::ranges::sort(texts);
  EXPECT_THAT(texts, ::testing::ElementsAre("", "hi", "ho"));
}

// Searches with and without a grammar, with so few blocks that groups are preempted.
TEST_F(ConstrainedBeams, ArePreemptedAndFindTheSame) {
  StandInEngine engine =
      this->engine({.max_sequences = 16, .max_step_tokens = 64, .context = 128, .pool_blocks = 17});
  std::vector<GenerationRequest> requests;
  std::vector<std::vector<TokenStream>> streams;
  for (uint32_t i = 0; i < 12; ++i) {
    requests.push_back(request(i % 2 == 0 ? "[a-m]*" : "([a-f][g-z])*", i, {.beams = 2 + i % 3}));
    requests.back().max_tokens = 40;
    streams.push_back(engine->submit_n(requests.back(), 2).value());
  }
  for (uint32_t i = 0; i < requests.size(); ++i) {
    SCOPED_TRACE(i);
    expect_found(engine, requests[i], streams[i]);
  }
  const Metrics& metrics = engine->metrics();
  EXPECT_GT(metrics.preemptions_recompute.value() + metrics.preemptions_swap.value(), 0u);
}

TEST_F(ConstrainedBeams, NeedEndTokens) {
  StandInEngine engine = this->engine();
  GenerationRequest asked = request("a*", 1, {.beams = 2});
  asked.ignore_end = true;
  const auto refused = engine->submit(asked);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "beam search with a grammar cannot ignore end tokens");
}

}  // namespace
}  // namespace hearth::testing
