#include "engine/decoding/beam.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "tests/support/reference_beam.h"

namespace hearth {
namespace {

using testing::ReferenceBeamSearch;
using testing::ReferenceText;
using Logprobs = std::vector<std::pair<TokenId, double>>;

// A model whose log-probabilities are a function of the tokens before. Tokens below `end_tokens`
// end a text.
struct ToyModel {
  uint32_t seed = 0, vocabulary = 12, end_tokens = 1;

  Logprobs operator()(const std::vector<TokenId>& tokens) const {
    std::seed_seq mixed(tokens.begin(), tokens.end());
    uint32_t first[1];
    mixed.generate(first, first + 1);
    std::mt19937 random(first[0] + seed);
    std::uniform_real_distribution<double> logit(-2, 2);
    Logprobs logprobs;
    double sum = 0;
    for (TokenId token = 0; token < vocabulary; ++token) {
      logprobs.emplace_back(token, logit(random));
      sum += std::exp(logprobs.back().second);
    }
    for (auto& [token, logprob] : logprobs) logprob = static_cast<float>(logprob - std::log(sum));
    return logprobs;
  }
};

std::vector<ReferenceText> search(const ToyModel& model, const BeamOptions& options,
                                  const std::vector<TokenId>& prompt, uint32_t max_new) {
  BeamSearch search(options, max_new);
  const auto path = [&](uint32_t node) {
    std::vector<TokenId> tokens;
    for (; node != BeamSearch::kNoNode; node = search.node(node).before)
      tokens.push_back(search.node(node).token);
    std::ranges::reverse(tokens);
    return tokens;
  };
  bool goes_on = true;
  while (goes_on) {
    std::vector<BeamSearch::Candidate> candidates;
    for (uint32_t beam = 0; beam < search.running().size(); ++beam) {
      std::vector<TokenId> tokens = prompt;
      std::ranges::copy(path(search.running()[beam].node), std::back_inserter(tokens));
      Logprobs logprobs = model(tokens);
      std::ranges::stable_sort(logprobs, std::ranges::greater(), &Logprobs::value_type::second);
      // No more than the contract asks for.
      logprobs.resize(std::min<size_t>(logprobs.size(), options.beams + model.end_tokens));
      for (const auto& [token, logprob] : logprobs)
        candidates.push_back({.beam = beam,
                              .token = token,
                              .logprob = static_cast<float>(logprob),
                              .ends = token < model.end_tokens});
    }
    goes_on = search.advance(candidates);
    EXPECT_TRUE(!goes_on || search.running().size() == options.beams);
  }
  std::vector<ReferenceText> texts;
  for (const BeamSearch::Finished& text : search.finished())
    texts.push_back({path(text.node), text.score});
  return texts;
}

TEST(BeamSearch, FindsWhatTransformersFinds) {
  const std::vector<TokenId> prompt = {5, 7};
  uint32_t ended_early = 0, searches = 0;
  for (uint32_t seed = 0; seed < 12; ++seed)
    for (const uint32_t beams : {2u, 3u, 4u, 7u})
      for (const uint32_t end_tokens : {0u, 1u, 2u})
        for (const float penalty : {-1.0f, 0.0f, 0.6f, 1.0f, 3.0f})
          for (const auto stopping :
               {EarlyStopping::kOff, EarlyStopping::kOn, EarlyStopping::kNever}) {
            const ToyModel model{.seed = seed, .end_tokens = end_tokens};
            const BeamOptions options{
                .beams = beams, .length_penalty = penalty, .early_stopping = stopping};
            constexpr uint32_t kMaxNew = 8;
            const auto expected = ReferenceBeamSearch{options, kMaxNew, end_tokens}.run(
                prompt, model,
                [&](const std::vector<TokenId>& text) { return text.back() < end_tokens; });
            const auto found = search(model, options, prompt, kMaxNew);
            ASSERT_EQ(found.size(), expected.size());
            for (size_t i = 0; i < found.size(); ++i) {
              ASSERT_EQ(found[i].tokens, expected[i].tokens)
                  << "seed " << seed << ", beams " << beams << ", penalty " << penalty << ", text "
                  << i;
              ASSERT_NEAR(found[i].score, expected[i].score, 1e-9);
            }
            ++searches;
            if (found.back().tokens.size() < kMaxNew) ++ended_early;
          }
  EXPECT_GT(ended_early, searches / 20);
  EXPECT_LT(ended_early, searches);
}

TEST(BeamSearch, ALengthOfOneReturnsTheMostProbableTokens) {
  BeamSearch search({.beams = 2}, 1);
  const std::vector<BeamSearch::Candidate> candidates = {
      {.token = 3, .logprob = -1}, {.token = 1, .logprob = -2}, {.token = 2, .logprob = -3}};
  EXPECT_FALSE(search.advance(candidates));
  ASSERT_EQ(search.finished().size(), 2u);
  EXPECT_EQ(search.node(search.finished()[0].node).token, 3u);
  EXPECT_EQ(search.node(search.finished()[1].node).token, 1u);
}

// An end token below the best `beams` continuations would not have been kept as a beam.
TEST(BeamSearch, AnEndOutsideTheBeamsDoesNotCount) {
  BeamSearch search({.beams = 2}, 5);
  const std::vector<BeamSearch::Candidate> candidates = {{.token = 3, .logprob = -1},
                                                         {.token = 1, .logprob = -2},
                                                         {.token = 0, .logprob = -3, .ends = true}};
  EXPECT_TRUE(search.advance(candidates));
  EXPECT_TRUE(search.finished().empty());
}

TEST(BeamSearch, KeepsItsNumberOfBeamsIfThereAreFewCandidates) {
  BeamSearch search({.beams = 3}, 2);
  const std::vector<BeamSearch::Candidate> first = {{.token = 4, .logprob = -1}};
  ASSERT_TRUE(search.advance(first));
  ASSERT_EQ(search.running().size(), 3u);
  std::vector<BeamSearch::Candidate> second;
  for (uint32_t beam = 0; beam < 3; ++beam)
    second.push_back({.beam = beam, .token = 5, .logprob = -1});
  EXPECT_FALSE(search.advance(second));
  // Those that are only there to keep the number do not become texts.
  ASSERT_EQ(search.finished().size(), 1u);
  EXPECT_NEAR(search.finished()[0].score, -1, 1e-9);
}

TEST(BeamSearch, EndsIfEveryContinuationEnds) {
  BeamSearch search({.beams = 2}, 5);
  const std::vector<BeamSearch::Candidate> candidates = {{.token = 0, .logprob = -1, .ends = true},
                                                         {.token = 1, .logprob = -2, .ends = true}};
  EXPECT_FALSE(search.advance(candidates));
  EXPECT_EQ(search.finished().size(), 2u);
}

}  // namespace
}  // namespace hearth
