// Guessing from the output of other requests: never changes what is generated, and happens only
// between requests of one owner.
#include <gtest/gtest.h>

#include "tests/support/stand_in_engine.h"

namespace hearth {
namespace {

using testing::read_ids;
using testing::StandInEngine;
using testing::StandInOptions;

// With this many different tokens a text does not repeat itself.
StandInOptions sharing_options(uint32_t shared_tokens,
                               SpeculationMethod method = SpeculationMethod::kNgram) {
  return {.limits = {.max_sequences = 4,
                     .max_step_tokens = 256,
                     .context = 256,
                     .pool_blocks = 100,
                     .max_proposed = 40},
          .speculation = {.method = method, .shared_tokens = shared_tokens}};
}

GenerationRequest shared_request(uint32_t seed, uint32_t owner = 0) {
  GenerationRequest request{.prompt = testing::made_up_prompt(20, seed), .max_tokens = 60};
  request.sampling.temperature = 0;
  request.owner = owner;
  return request;
}

void expect_plain_output(StandInEngine& engine, const GenerationRequest& request) {
  auto stream = engine->submit(request);
  ASSERT_TRUE(stream.ok()) << stream.error().message;
  EXPECT_EQ(read_ids(*stream), engine.alone(request));
}

TEST(EngineSharedNgrams, ARepeatedAnswerIsGuessedFromTheFirstAndIsTheSame) {
  StandInEngine engine(sharing_options(1024));
  const Metrics& metrics = engine->metrics();
  expect_plain_output(engine, shared_request(1));
  EXPECT_EQ(metrics.shared_proposed_tokens.value(), 0u);
  const uint64_t steps = metrics.steps.value();
  expect_plain_output(engine, shared_request(1));
  EXPECT_GT(metrics.shared_accepted_tokens.value(), 40u);
  EXPECT_LE(metrics.shared_accepted_tokens.value(), metrics.shared_proposed_tokens.value());
  EXPECT_LE(metrics.shared_accepted_tokens.value(), metrics.accepted_tokens.value());
  EXPECT_LT(metrics.steps.value() - steps, steps / 2);
}

TEST(EngineSharedNgrams, IsOffByDefault) {
  StandInEngine engine(sharing_options(0));
  for (int i = 0; i < 2; ++i) expect_plain_output(engine, shared_request(1));
  EXPECT_EQ(engine->metrics().shared_proposed_tokens.value(), 0u);
  EXPECT_EQ(engine->metrics().accepted_tokens.value(), 0u);
}

TEST(EngineSharedNgrams, OwnersAndSaltedRequestsShareNothing) {
  StandInEngine engine(sharing_options(1024));
  GenerationRequest salted = shared_request(1, 1);
  salted.cache_salt = 7;
  expect_plain_output(engine, salted);
  expect_plain_output(engine, shared_request(1, 1));
  expect_plain_output(engine, shared_request(1, 2));
  expect_plain_output(engine, salted);
  EXPECT_EQ(engine->metrics().shared_proposed_tokens.value(), 0u);
  expect_plain_output(engine, shared_request(1, 2));
  EXPECT_GT(engine->metrics().shared_accepted_tokens.value(), 40u);
}

TEST(EngineSharedNgrams, OldAnswersAreForgotten) {
  StandInEngine engine(sharing_options(128));
  expect_plain_output(engine, shared_request(1));
  for (uint32_t seed = 2; seed < 5; ++seed) expect_plain_output(engine, shared_request(seed));
  expect_plain_output(engine, shared_request(1));
  EXPECT_EQ(engine->metrics().shared_accepted_tokens.value(), 0u);
  expect_plain_output(engine, shared_request(1));
  EXPECT_GT(engine->metrics().shared_accepted_tokens.value(), 40u);
}

// Many at a time, sampled and greedy, of several owners, with wrong guesses among them: texts of a
// small vocabulary match by chance.
TEST(EngineSharedNgrams, GeneratesWhatPlainDecodingDoes) {
  for (const auto method : {SpeculationMethod::kNgram, SpeculationMethod::kAuto}) {
    StandInOptions options = sharing_options(512, method);
    options.vocabulary = 7;
    StandInEngine engine(options);
    if (method == SpeculationMethod::kAuto)
      engine.executor().delay = std::chrono::microseconds(300);
    std::vector<GenerationRequest> requests;
    std::vector<TokenStream> streams;
    for (uint32_t i = 0; i < 60; ++i) {
      GenerationRequest request = shared_request(i % 9, i % 3);
      for (TokenId& id : request.prompt) id %= options.vocabulary;
      request.sampling.temperature = i % 2 == 0 ? 0.0f : 1.0f;
      request.sampling.seed = i % 4;
      auto stream = engine->submit(request);
      ASSERT_TRUE(stream.ok());
      requests.push_back(std::move(request));
      streams.push_back(std::move(*stream));
    }
    for (size_t i = 0; i < streams.size(); ++i)
      ASSERT_EQ(read_ids(streams[i]), engine.alone(requests[i])) << "request " << i;
    EXPECT_GT(engine->metrics().shared_proposed_tokens.value(),
              engine->metrics().shared_accepted_tokens.value());
    EXPECT_GT(engine->metrics().shared_accepted_tokens.value(), 0u);
  }
}

}  // namespace
}  // namespace hearth
