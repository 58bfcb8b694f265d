// Beam search in the engine: finds what a plain search over the same model finds, whatever else
// happens to it, and computes the prompt once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/text/tokenizer.h"
#include "tests/support/reference_beam.h"
#include "tests/support/stand_in_engine.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

constexpr SchedulerLimits kBeamLimits{
    .max_sequences = 8, .max_step_tokens = 256, .context = 256, .pool_blocks = 400};
constexpr TokenId kEnd = 2;
constexpr uint32_t kLetters = 29;

// <unk>, <s>, </s>, then single letters from 'a' on.
std::unique_ptr<Tokenizer> letters() {
  Vocabulary vocabulary{.kind = VocabularyKind::kSentencePiece};
  vocabulary.tokens.push_back({.text = "<unk>", .kind = TokenKind::kUnknown});
  vocabulary.tokens.push_back({.text = "<s>", .kind = TokenKind::kControl});
  vocabulary.tokens.push_back({.text = "</s>", .kind = TokenKind::kControl});
  for (char letter = 'a'; letter <= 'z'; ++letter)
    vocabulary.tokens.push_back({.text = std::string(1, letter), .score = -letter * 1.0f});
  vocabulary.unknown = 0;
  vocabulary.eos = kEnd;
  vocabulary.end_of_generation = {kEnd};
  return Tokenizer::create(std::move(vocabulary)).value();
}

std::string spelled(const std::vector<TokenId>& tokens) {
  std::string text;
  for (const TokenId token : tokens)
    if (token >= 3) text += static_cast<char>('a' + token - 3);
  return text;
}

GenerationRequest beam_request(uint32_t seed, uint32_t prompt, uint32_t max_tokens,
                               const BeamOptions& beam) {
  GenerationRequest request{.prompt = made_up_prompt(prompt, seed), .max_tokens = max_tokens};
  for (TokenId& id : request.prompt) id = 3 + id % (kLetters - 3);
  request.beam = beam;
  return request;
}

std::vector<ReferenceText> expected_texts(const StandInOptions& options,
                                          const GenerationRequest& request) {
  const StandInSampler sampler(options);
  return ReferenceBeamSearch{request.beam, request.max_tokens, request.ignore_end ? 0u : 1u}.run(
      request.prompt,
      [&](const std::vector<TokenId>& tokens) {
        uint64_t read = 0;
        for (const TokenId token : tokens) read = StandInSampler::mix(read, token);
        std::vector<std::pair<TokenId, double>> logprobs;
        for (const params::TokenLogprob& entry : sampler.top(read, options.vocabulary))
          logprobs.emplace_back(entry.id, entry.logprob);
        return logprobs;
      },
      [&](const std::vector<TokenId>& text) {
        if (!request.ignore_end && text.back() == kEnd) return true;
        const std::string so_far = spelled(text);
        return std::ranges::any_of(request.stop, [&](const std::string& stop) {
          return so_far.find(stop) != std::string::npos;
        });
      });
}

class EngineBeamsTest : public ::testing::Test {
 protected:
  StandInEngine engine(const SchedulerLimits& limits = kBeamLimits,
                       const Policy& policy = {}) const {
    return StandInEngine({.limits = limits, .vocabulary = kLetters}, policy, tokenizer_.get());
  }
  // Reads the streams of a search and compares them with the reference.
  static void expect_found(const StandInEngine& engine, const GenerationRequest& request,
                           std::vector<TokenStream>& streams) {
    const std::vector<ReferenceText> expected = expected_texts(engine.options(), request);
    ASSERT_LE(streams.size(), expected.size());
    for (size_t i = 0; i < streams.size(); ++i) {
      ASSERT_EQ(read_ids(streams[i]), expected[i].tokens) << "text " << i;
      const GenerationEnd& end = streams[i].end();
      ASSERT_TRUE(end.score.has_value());
      EXPECT_NEAR(*end.score, expected[i].score, 1e-4 * std::abs(expected[i].score));
      EXPECT_EQ(end.generated_tokens, expected[i].tokens.size());
      const bool full = expected[i].tokens.size() == request.max_tokens;
      const bool ended = !request.ignore_end && expected[i].tokens.back() == kEnd;
      if (request.stop.empty()) {
        EXPECT_EQ(end.reason, full && !ended ? FinishReason::kLength : FinishReason::kStop);
      }
    }
  }
  static void run_search(StandInEngine& engine, const GenerationRequest& request, uint32_t n) {
    auto streams = engine->submit_n(request, n);
    ASSERT_TRUE(streams.ok()) << streams.error().message;
    ASSERT_EQ(streams->size(), n);
    expect_found(engine, request, *streams);
  }

  std::unique_ptr<Tokenizer> tokenizer_ = letters();
};

TEST_F(EngineBeamsTest, FindsWhatTransformersFinds) {
  StandInEngine engine = this->engine();
  uint32_t number = 0;
  for (const uint32_t beams : {2u, 4u, 7u})
    for (const float penalty : {0.0f, 1.0f, 2.0f})
      for (const auto stopping : {EarlyStopping::kOff, EarlyStopping::kOn, EarlyStopping::kNever}) {
        ++number;
        SCOPED_TRACE(number);
        const BeamOptions options{
            .beams = beams, .length_penalty = penalty, .early_stopping = stopping};
        run_search(engine, beam_request(number, 1 + number * 3, 20, options), beams);
      }
}

TEST_F(EngineBeamsTest, EndsAtStopStringsAndNotAtEndTokensIfTheyAreIgnored) {
  StandInEngine engine = this->engine();
  GenerationRequest request = beam_request(5, 20, 24, {.beams = 4});
  request.ignore_end = true;
  run_search(engine, request, 4);
  // A stop string that the best text has.
  const std::string text = spelled(expected_texts(engine.options(), request)[0].tokens);
  ASSERT_GT(text.size(), 10u);
  request.stop = {text.substr(4, 3)};
  request.beam.length_penalty = 0;  // the shortest text is the best one
  run_search(engine, request, 1);
  auto stopped = engine->submit(request);
  ASSERT_TRUE(stopped.ok());
  EXPECT_THAT(read_text(*stopped), ::testing::Not(HasSubstr(request.stop[0])));
  EXPECT_EQ(stopped->end().reason, FinishReason::kStop);
}

TEST_F(EngineBeamsTest, ThePromptIsComputedOnceAndSharedByAllBeams) {
  StandInEngine engine = this->engine();
  GenerationRequest request = beam_request(1, 100, 10, {.beams = 4});
  request.ignore_end = true;
  run_search(engine, request, 2);
  EXPECT_EQ(engine->metrics().prompt_tokens.value(), 100u);
  EXPECT_EQ(engine.executor().rows, 100u + 9 * 4);
  // A block is copied only where two beams write to it: at most one per beam and step.
  EXPECT_GT(engine->metrics().blocks_copied.value(), 0u);
  EXPECT_LE(engine->metrics().blocks_copied.value(), 9u * 3);
}

TEST_F(EngineBeamsTest, ReturnsLogprobsOfTheText) {
  StandInEngine engine = this->engine();
  GenerationRequest request = beam_request(3, 12, 8, {.beams = 3});
  request.ignore_end = true;
  request.sampling.top_logprobs = 2;
  auto stream = engine->submit(request);
  ASSERT_TRUE(stream.ok());
  double sum = 0;
  uint64_t read = 0;
  for (const TokenId token : request.prompt) read = StandInSampler::mix(read, token);
  while (const auto token = stream->next()) {
    const auto top = StandInSampler(engine.options()).top(read, 2);
    ASSERT_EQ(token->top.size(), 2u);
    EXPECT_EQ(token->top[0].id, top[0].id);
    EXPECT_EQ(token->top[1].logprob, top[1].logprob);
    sum += token->logprob;
    read = StandInSampler::mix(read, token->id);
  }
  EXPECT_NEAR(*stream->end().score, sum / 8, 1e-4);
}

// Searches, and plain requests between them, with so few blocks that groups are preempted.
void run_crowd(StandInEngine& engine, bool expect_preemptions) {
  std::vector<GenerationRequest> requests;
  std::vector<std::vector<TokenStream>> streams;
  for (uint32_t i = 0; i < 18; ++i) {
    const bool searches = i % 3 != 2;
    GenerationRequest request =
        beam_request(i, 3 + i % 9, 36 + i % 12,
                     {.beams = searches ? 2 + i % 3 : 1,
                      .early_stopping = i % 2 == 0 ? EarlyStopping::kOff : EarlyStopping::kNever});
    request.ignore_end = i % 4 != 0 || !searches;
    request.priority = static_cast<int32_t>(i % 2);
    if (!searches) request.sampling.temperature = 0;
    auto submitted = engine->submit_n(request, searches ? 2 : 1);
    ASSERT_TRUE(submitted.ok()) << submitted.error().message;
    requests.push_back(request);
    streams.push_back(std::move(*submitted));
  }
  for (uint32_t i = 0; i < requests.size(); ++i) {
    SCOPED_TRACE(i);
    const std::vector<ReferenceText> expected =
        requests[i].beam.searches() ? expected_texts(engine.options(), requests[i])
                                    : std::vector<ReferenceText>{{engine.alone(requests[i])}};
    for (size_t k = 0; k < streams[i].size(); ++k)
      ASSERT_EQ(read_ids(streams[i][k]), expected[k].tokens) << "text " << k;
  }
  const Metrics& metrics = engine->metrics();
  if (expect_preemptions) {
    EXPECT_GT(metrics.preemptions_recompute.value() + metrics.preemptions_swap.value(), 0u);
  }
}

TEST_F(EngineBeamsTest, OutOfBlocksASearchIsPreemptedAndFindsTheSame) {
  for (const Preemption preemption : {Preemption::kRecompute, Preemption::kSwap})
    for (const bool cache : {true, false}) {
      Policy policy;
      policy.preemption = preemption;
      policy.prefix_cache = cache;
      StandInEngine engine = this->engine({.max_sequences = 16,
                                           .max_step_tokens = 64,
                                           .context = 128,
                                           .pool_blocks = 17,
                                           .swap_blocks = 30},
                                          policy);
      run_crowd(engine, true);
    }
}

TEST_F(EngineBeamsTest, FindsTheSameUnderEveryPolicy) {
  for (const std::string_view name : policy_names()) {
    SCOPED_TRACE(name);
    Policy policy = *named_policy(name);
    policy.batch_window_ms = std::min(policy.batch_window_ms, 1u);
    StandInEngine engine = this->engine({.max_sequences = 6,
                                         .max_step_tokens = 60,
                                         .context = 128,
                                         .pool_blocks = 20,
                                         .swap_blocks = 30},
                                        policy);
    run_crowd(engine, false);
  }
}

TEST_F(EngineBeamsTest, SearchesThatTakeAllSlotsWaitForEachOther) {
  StandInEngine engine =
      this->engine({.max_sequences = 4, .max_step_tokens = 64, .context = 128, .pool_blocks = 100});
  std::vector<GenerationRequest> requests;
  std::vector<std::vector<TokenStream>> streams;
  for (uint32_t i = 0; i < 5; ++i) {
    requests.push_back(beam_request(i, 10, 15, {.beams = i % 2 == 0 ? 4u : 3u}));
    streams.push_back(std::move(engine->submit_n(requests.back(), 1).value()));
  }
  for (uint32_t i = 0; i < requests.size(); ++i) expect_found(engine, requests[i], streams[i]);
}

TEST_F(EngineBeamsTest, RunsAloneIfTheLimitIsLoweredBelowItsBeams) {
  StandInEngine engine = this->engine();
  engine->pause();
  GenerationRequest request = beam_request(9, 10, 15, {.beams = 4});
  auto streams = engine->submit_n(request, 1);
  ASSERT_TRUE(streams.ok());
  engine->set_limits(2, 3);
  engine->resume();
  expect_found(engine, request, *streams);
}

TEST_F(EngineBeamsTest, DroppingOneStreamEndsTheWholeSearch) {
  StandInEngine engine = this->engine();
  engine.executor().delay = std::chrono::microseconds(200);
  GenerationRequest request = beam_request(2, 10, 200, {.beams = 4});
  request.ignore_end = true;
  auto streams = engine->submit_n(request, 2);
  ASSERT_TRUE(streams.ok());
  ASSERT_TRUE(comes_true([&] { return engine->metrics().generated_tokens.value() > 40; }));
  TokenStream kept = std::move((*streams)[0]);
  streams->clear();
  EXPECT_TRUE(read_ids(kept).empty());
  EXPECT_EQ(kept.end().reason, FinishReason::kCancelled);
  engine->inspect([](const Scheduler& scheduler) { EXPECT_TRUE(scheduler.idle()); });
  EXPECT_EQ(engine->metrics().finished_cancelled.value(), 2u);
  run_search(engine, beam_request(3, 10, 10, {.beams = 8}), 8);
}

TEST_F(EngineBeamsTest, TheTimeLimitEndsTheWholeSearch) {
  StandInEngine engine = this->engine();
  engine.executor().delay = std::chrono::microseconds(500);
  GenerationRequest request = beam_request(2, 10, 240, {.beams = 4});
  request.ignore_end = true;
  request.time_limit_seconds = 0.02;
  auto streams = engine->submit_n(request, 3);
  ASSERT_TRUE(streams.ok());
  for (TokenStream& stream : *streams) {
    EXPECT_TRUE(read_ids(stream).empty());
    EXPECT_EQ(stream.end().reason, FinishReason::kTimeLimit);
  }
}

TEST_F(EngineBeamsTest, AStepThatFailsEndsTheWholeSearchAndNobodyElse) {
  StandInEngine engine = this->engine();
  engine.executor().faults.kind = ErrorKind::kOutOfMemory;
  engine.executor().faults.submit.arm(4);
  auto streams = engine->submit_n(beam_request(2, 10, 20, {.beams = 4}), 2);
  ASSERT_TRUE(streams.ok());
  for (TokenStream& stream : *streams) {
    read_ids(stream);
    EXPECT_EQ(stream.end().reason, FinishReason::kError);
  }
  run_search(engine, beam_request(3, 10, 10, {.beams = 8}), 8);
}

TEST_F(EngineBeamsTest, CountsTheTextsThatAreReturned) {
  StandInEngine engine = this->engine();
  GenerationRequest request = beam_request(1, 10, 6, {.beams = 4});
  request.ignore_end = true;
  run_search(engine, request, 2);
  const Metrics& metrics = engine->metrics();
  EXPECT_EQ(metrics.requests_submitted.value(), 2u);
  EXPECT_EQ(metrics.finished_length.value(), 2u);
  EXPECT_EQ(metrics.finished_stop.value(), 0u);
  EXPECT_EQ(metrics.generated_tokens.value(), 1u + 5 * 4);
}

TEST_F(EngineBeamsTest, RefusesWhatDoesNotFitTogether) {
  StandInEngine engine = this->engine();
  const auto refusal = [&](GenerationRequest request, uint32_t n) {
    auto streams = engine->submit_n(request, n);
    EXPECT_FALSE(streams.ok());
    return streams.ok() ? std::string() : streams.error().message;
  };
  const GenerationRequest plain = beam_request(1, 10, 6, {.beams = 4});
  EXPECT_EQ(refusal(plain, 5), "5 texts are more than the 4 beams of a search");
  GenerationRequest request = plain;
  request.beam.beams = 9;
  EXPECT_EQ(refusal(request, 1), "the request runs 9 sequences at once; the limit is 8");
  request.beam.beams = 4'000'000'000;
  EXPECT_EQ(refusal(request, 1), "4000000000 beams are more than the limit of 16");
  request = plain;
  request.sampling.repetition_penalty = 1.1f;
  EXPECT_THAT(refusal(request, 1), HasSubstr("a repetition"));
  request = plain;
  request.beam.length_penalty = std::nanf("");
  EXPECT_THAT(refusal(request, 1), HasSubstr("length penalty"));
  StandInEngine small =
      this->engine({.max_sequences = 20, .max_step_tokens = 64, .context = 128, .pool_blocks = 6});
  auto streams = small->submit_n(beam_request(1, 30, 20, {.beams = 4}), 1);
  ASSERT_FALSE(streams.ok());
  EXPECT_EQ(streams.error().message,
            "4 sequences of 31 tokens need 8 blocks of 16 tokens; the KV cache has 6");
}

}  // namespace
}  // namespace hearth::testing
