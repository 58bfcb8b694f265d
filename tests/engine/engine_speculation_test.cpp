// Speculation never changes what a request generates, whatever else happens to it.
#include <gtest/gtest.h>

#include "engine/vocabulary_difference.h"
#include "tests/support/stand_in_engine.h"

namespace hearth {
namespace {

using testing::mixed_request;
using testing::read_ids;
using testing::StandInEngine;
using testing::StandInExecutor;
using testing::StandInOptions;

// So few different tokens that earlier text often matches, and guesses are often right.
constexpr uint32_t kFewTokens = 3;

struct Way {
  SpeculationMethod method = SpeculationMethod::kNgram;
  // The host has to read the drafts of a model with more tokens before a step verifies them.
  uint32_t draft_vocabulary = kFewTokens - 1;
};

StandInOptions speculating_options(SchedulerLimits limits, const Way& way = {}) {
  const SpeculationMethod method = way.method;
  limits.max_proposed = 40;
  StandInOptions options{.limits = limits,
                         .vocabulary = kFewTokens,
                         .speculation = {.method = method, .max_proposed = 6}};
  if (method == SpeculationMethod::kLookahead) options.speculation.max_proposed = 0;
  if (method == SpeculationMethod::kDraft) {
    options.draft_blocks = 30;  // not enough for everyone
    options.draft_vocabulary = way.draft_vocabulary;
  }
  return options;
}

constexpr Way kWays[] = {{SpeculationMethod::kNgram},
                         {SpeculationMethod::kLookahead},
                         {SpeculationMethod::kTree},
                         {SpeculationMethod::kDraft, kFewTokens - 1},
                         {SpeculationMethod::kDraft, kFewTokens + 1}};

bool drafts_unread(const Way& way) {
  return way.method == SpeculationMethod::kDraft && way.draft_vocabulary <= kFewTokens;
}

GenerationRequest speculated_request(uint32_t number) {
  GenerationRequest request = mixed_request(number);
  for (TokenId& id : request.prompt) id %= kFewTokens;
  std::erase_if(request.biases, [](const auto& bias) { return bias.token >= kFewTokens; });
  return request;
}

void expect_outputs_of_plain_decoding(StandInEngine& engine, uint32_t count) {
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < count; ++i) requests.push_back(speculated_request(i));
  std::vector<TokenStream> streams;
  for (const GenerationRequest& request : requests) {
    auto stream = engine->submit(request);
    ASSERT_TRUE(stream.ok()) << stream.error().message;
    streams.push_back(std::move(*stream));
  }
  for (uint32_t i = 0; i < count; ++i)
    ASSERT_EQ(read_ids(streams[i]), engine.alone(requests[i])) << "request " << i;
}

TEST(EngineSpeculation, GeneratesWhatPlainDecodingDoesInFewerSteps) {
  for (const Way& way : kWays) {
    SCOPED_TRACE(static_cast<int>(way.method));
    StandInEngine engine(speculating_options(
        {.max_sequences = 8, .max_step_tokens = 256, .context = 256, .pool_blocks = 400}, way));
    expect_outputs_of_plain_decoding(engine, 120);
    const Metrics& metrics = engine->metrics();
    EXPECT_GT(metrics.accepted_tokens.value(), 60u);
    EXPECT_GT(metrics.proposed_tokens.value(), metrics.accepted_tokens.value());
    EXPECT_EQ(engine.executor().unread_drafts > 0, drafts_unread(way));
  }
}

// The device is never idle between the drafts and the step that verifies them: the draft model's
// last two steps are in flight when that step is submitted.
// One request at a time, for which a draft model that is always right drafts four tokens.
StandInOptions four_drafts() {
  StandInOptions options{
      .limits = {.max_sequences = 1, .max_step_tokens = 64, .context = 256, .pool_blocks = 100},
      .speculation = {.method = SpeculationMethod::kDraft, .max_proposed = 4},
      .draft_blocks = 100};
  options.limits.max_proposed = 4;
  return options;
}

TEST(EngineSpeculation, VerifyingStepsAreSubmittedBeforeTheDraftsAreRead) {
  StandInEngine engine(four_drafts());
  int drafting = 0;  // steps of the draft model in flight
  std::vector<int> drafting_at_submit;
  engine.draft().on_call = [&](char call) { drafting += call == 's' ? 1 : -1; };
  engine.executor().on_call = [&](char call) {
    if (call == 's')
      drafting_at_submit.push_back(drafting);
    else
      EXPECT_EQ(drafting, 0) << "drafts are read before the step that verifies them";
  };
  GenerationRequest request{.prompt = testing::made_up_prompt(10, 1), .max_tokens = 26};
  auto stream = engine->submit(request);
  ASSERT_TRUE(stream.ok());
  EXPECT_EQ(read_ids(*stream), engine.alone(request));
  engine.close();
  // The prompt and the step that was planned behind it, and then a step for every four drafts and
  // the token after them.
  EXPECT_EQ(drafting_at_submit, (std::vector<int>{0, 0, 2, 2, 2, 2, 2}));
}

// What drafts cost is not charged to the step that verifies them, although it was submitted first.
TEST(EngineSpeculation, AVerifyingStepRunsFromTheEndOfItsDrafts) {
  constexpr std::chrono::milliseconds kDraftStep{4};
  StandInEngine engine(four_drafts());
  engine.draft().delay = kDraftStep;
  auto stream = engine->submit({.prompt = testing::made_up_prompt(10, 1), .max_tokens = 60});
  ASSERT_TRUE(stream.ok());
  read_ids(*stream);
  engine->drain();
  std::vector<double> seconds;
  StepRecord record;
  for (uint64_t i = 0; engine->records().read(i, record); ++i)
    if (record.members.size() == 1 && record.members[0].proposed > 0)
      seconds.push_back(record.run_seconds);
  std::ranges::sort(seconds);
  ASSERT_GT(seconds.size(), 5u);
  EXPECT_LT(seconds[seconds.size() / 2], std::chrono::duration<double>(kDraftStep).count());
  EXPECT_GE(seconds[0], 0);
}

// If some requests draft while others run ahead of the host, drafts begin while an older step is
// still in flight. The host reads that step first: its tokens do not wait for the drafts.
TEST(EngineSpeculation, AnOlderStepDoesNotWaitForDrafts) {
  StandInOptions options = speculating_options(
      {.max_sequences = 8, .max_step_tokens = 64, .context = 256, .pool_blocks = 200},
      {SpeculationMethod::kDraft});
  StandInEngine engine(options);
  uint64_t drafts_submitted = 0, drafts_read = 0, waited = 0, younger = 0;
  std::vector<uint64_t> drafts_at_submit;  // by step
  engine.draft().on_call = [&](char call) { ++(call == 's' ? drafts_submitted : drafts_read); };
  engine.executor().on_call = [&](char call) {
    if (call == 's') {
      drafts_at_submit.push_back(drafts_submitted);
    } else if (drafts_at_submit.at(waited++) < drafts_submitted) {
      ++younger;
      EXPECT_LT(drafts_read, drafts_submitted);
    }
  };
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < 24; ++i) {
    requests.push_back({.prompt = {i % kFewTokens, 1}, .max_tokens = 30 + i});
    requests.back().prompt.push_back(i / kFewTokens % kFewTokens);
    requests.back().sampling.seed = i;
  }
  auto streams = engine->submit(requests);
  ASSERT_TRUE(streams.ok());
  for (size_t i = 0; i < streams->size(); ++i)
    EXPECT_EQ(read_ids((*streams)[i]), engine.alone(requests[i])) << i;
  engine.close();
  EXPECT_GT(younger, 0u) << "it never happened";
}

// Drafts that are made just before a pause cost no more than others.
TEST(EngineSpeculation, AutoStillDraftsAfterAPause) {
  StandInOptions options{
      .limits = {.max_sequences = 1, .max_step_tokens = 64, .context = 2048, .pool_blocks = 200},
      .speculation = {.method = SpeculationMethod::kAuto},
      .draft_blocks = 200};
  options.limits.max_proposed = 8;
  StandInEngine engine(options);
  engine.draft().delay = std::chrono::microseconds(100);
  engine.executor().delay = std::chrono::microseconds(1000);
  const Counter& accepted = engine->metrics().accepted_tokens;
  auto stream = engine->submit({.prompt = testing::made_up_prompt(10, 1), .max_tokens = 1500});
  ASSERT_TRUE(stream.ok());
  while (accepted.value() < 100) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  engine->pause();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const uint64_t before = accepted.value();
  engine->resume();
  EXPECT_EQ(read_ids(*stream).size(), 1500u);
  EXPECT_GT(accepted.value(), before + 500);
}

// Drafts that take longer than the steps they save are not made, and others are.
TEST(EngineSpeculation, AutoDraftsWhileThatPaysOff) {
  using std::chrono::microseconds;
  for (const bool pays : {true, false}) {
    StandInOptions options{
        .limits = {.max_sequences = 1, .max_step_tokens = 64, .context = 512, .pool_blocks = 100},
        .speculation = {.method = SpeculationMethod::kAuto},
        .draft_blocks = 100};
    options.limits.max_proposed = 8;
    StandInEngine engine(options);
    engine.draft().delay = microseconds(pays ? 100 : 5000);
    engine.executor().delay = microseconds(1000);
    auto stream = engine->submit({.prompt = testing::made_up_prompt(10, 1), .max_tokens = 200});
    ASSERT_TRUE(stream.ok());
    EXPECT_EQ(read_ids(*stream).size(), 200u);
    const uint64_t accepted = stream->end().accepted_tokens;
    EXPECT_EQ(accepted > 100, pays) << accepted;
    EXPECT_EQ(engine.executor().unread_drafts > 0, true);
  }
}

// Penalties count the tokens on a row's path, whose ids the host writes into the step.
TEST(EngineSpeculation, DraftsAreReadFirstIfPenaltiesNeedThem) {
  StandInOptions options = speculating_options(
      {.max_sequences = 4, .max_step_tokens = 64, .context = 256, .pool_blocks = 100},
      {SpeculationMethod::kDraft});
  StandInEngine engine(options);
  std::vector<GenerationRequest> requests(4, {.prompt = {1, 2}, .max_tokens = 30});
  for (uint32_t i = 0; i < 4; ++i) requests[i].prompt.push_back(i % kFewTokens);
  requests[3].sampling.presence_penalty = 0.5f;
  requests[3].max_tokens = 60;
  auto streams = engine->submit(requests);
  ASSERT_TRUE(streams.ok());
  for (size_t i = 0; i < streams->size(); ++i)
    EXPECT_EQ(read_ids((*streams)[i]), engine.alone(requests[i])) << i;
  EXPECT_GT(engine->metrics().accepted_tokens.value(), 10u);
}

// A draft model that is the model itself is right whenever nothing but the text decides.
TEST(EngineSpeculation, PerfectDraftsAreAllAccepted) {
  StandInOptions options{
      .limits = {.max_sequences = 4, .max_step_tokens = 64, .context = 256, .pool_blocks = 100},
      .speculation = {.method = SpeculationMethod::kDraft},
      .draft_blocks = 100};
  StandInEngine engine(options);
  std::vector<GenerationRequest> requests;
  for (uint32_t i = 0; i < 6; ++i) {
    // The longest prompt takes the draft model several steps to read.
    requests.push_back({.prompt = testing::made_up_prompt(10 + 30 * i, i), .max_tokens = 60});
    requests.back().sampling.temperature = i % 2 == 0 ? 0.0f : 1.0f;
    requests.back().sampling.seed = i;
  }
  std::vector<TokenStream> streams;
  for (const GenerationRequest& request : requests) {
    auto stream = engine->submit(request);
    ASSERT_TRUE(stream.ok());
    streams.push_back(std::move(*stream));
  }
  for (size_t i = 0; i < streams.size(); ++i) {
    EXPECT_EQ(read_ids(streams[i]), engine.alone(requests[i]));
    const GenerationEnd& end = streams[i].end();
    EXPECT_EQ(end.accepted_tokens, end.proposed_tokens) << i;
    EXPECT_GT(end.accepted_tokens, 30u) << i;
  }
}

// An error of the draft model ends drafting, not the requests.
TEST(EngineSpeculation, RequestsContinueWithoutABrokenDraftModel) {
  for (const Way& way : kWays) {
    if (way.method != SpeculationMethod::kDraft) continue;
    for (const bool waiting : {false, true})
      // Calls in a row: some wait for the last step of a draft, which another step verifies then.
      for (int call = 20; call < 36; ++call) {
        SCOPED_TRACE(call);
        StandInEngine engine(speculating_options(
            {.max_sequences = 4, .max_step_tokens = 64, .context = 256, .pool_blocks = 100}, way));
        StandInExecutor& draft = engine.draft();
        draft.faults.kind = ErrorKind::kOutOfMemory;
        (waiting ? draft.faults.wait : draft.faults.submit).arm(call);
        expect_outputs_of_plain_decoding(engine, 12);
        EXPECT_EQ(engine->metrics().finished_error.value(), 0u);
        EXPECT_GT(engine->metrics().proposed_tokens.value(), 0u);
      }
  }
}

TEST(EngineSpeculation, ALostDeviceEndsRequestsWhoseDraftsAreUnread) {
  for (int call = 20; call < 36; ++call) {
    StandInOptions options = speculating_options(
        {.max_sequences = 4, .max_step_tokens = 64, .context = 256, .pool_blocks = 100},
        {SpeculationMethod::kDraft, kFewTokens});  // all drafts are right, so there are many
    StandInEngine engine(options);
    engine.draft().faults.wait.arm(call);
    auto stream = engine->submit({.prompt = {1, 2}, .max_tokens = 200});
    ASSERT_TRUE(stream.ok());
    read_ids(*stream);
    EXPECT_EQ(stream->end().reason, FinishReason::kError);
  }
}

// A step that could not be submitted ends its requests. The drafts that it would have verified are
// still in flight, and so are those that were proposed to the others.
TEST(EngineSpeculation, OthersContinueIfAVerifyingStepCannotBeSubmitted) {
  StandInEngine engine(speculating_options(
      {.max_sequences = 4, .max_step_tokens = 64, .context = 256, .pool_blocks = 100},
      {SpeculationMethod::kDraft}));
  engine.executor().faults.kind = ErrorKind::kOutOfMemory;
  engine.executor().faults.submit.arm(5);
  auto stream = engine->submit({.prompt = {1, 2}, .max_tokens = 100});
  ASSERT_TRUE(stream.ok());
  read_ids(*stream);
  EXPECT_EQ(stream->end().reason, FinishReason::kError);
  expect_outputs_of_plain_decoding(engine, 12);
}

TEST(EngineSpeculation, HoldsUnderEveryPolicyWithFewBlocks) {
  uint32_t count = 0;
  for (const std::string_view name : policy_names())
    for (const Preemption preemption : {Preemption::kRecompute, Preemption::kSwap}) {
      const Way& way = kWays[count++ % std::size(kWays)];
      SCOPED_TRACE(name);
      Policy policy = *named_policy(name);
      policy.preemption = preemption;
      policy.batch_window_ms = std::min(policy.batch_window_ms, 1u);
      StandInOptions options = speculating_options({.max_sequences = 6,
                                                    .max_step_tokens = 60,
                                                    .context = 128,
                                                    .pool_blocks = 14,
                                                    .swap_blocks = 30},
                                                   way);
      StandInEngine engine(options, policy);
      expect_outputs_of_plain_decoding(engine, 24);
      EXPECT_GT(engine->metrics().accepted_tokens.value(), 5u);
    }
}

// Costs decide how much is proposed, so it may be nothing; what is generated never changes.
TEST(EngineSpeculation, AutoGeneratesWhatPlainDecodingDoes) {
  for (const uint32_t blocks : {14u, 400u}) {
    StandInOptions options = speculating_options({.max_sequences = 8,
                                                  .max_step_tokens = 80,
                                                  .context = 128,
                                                  .pool_blocks = blocks,
                                                  .swap_blocks = 30});
    options.speculation = {.method = SpeculationMethod::kAuto};
    StandInEngine engine(options);
    // The stand-in takes as long for any step, so that proposals pay off.
    engine.executor().delay = std::chrono::microseconds(300);
    expect_outputs_of_plain_decoding(engine, 40);
    if (blocks == 400) {
      EXPECT_GT(engine->metrics().accepted_tokens.value(), 20u);
    }
  }
}

TEST(EngineSpeculation, SyntheticAcceptanceFollowsItsRate) {
  StandInOptions options{
      .limits = {.max_sequences = 4, .max_step_tokens = 256, .context = 1024, .pool_blocks = 400}};
  options.speculation = {.method = SpeculationMethod::kSynthetic, .synthetic_rate = 0.75};
  StandInEngine engine(options);
  engine.executor().delay = std::chrono::microseconds(100);
  std::vector<TokenStream> streams;
  for (uint32_t i = 0; i < 4; ++i) {
    auto stream = engine->submit({.prompt = {1, 2, 3 + i}, .max_tokens = 900});
    ASSERT_TRUE(stream.ok());
    streams.push_back(std::move(*stream));
  }
  uint64_t accepted = 0;
  for (TokenStream& stream : streams) {
    EXPECT_EQ(read_ids(stream).size(), 900u);
    accepted += stream.end().accepted_tokens;
  }
  const Metrics& metrics = engine->metrics();
  EXPECT_EQ(accepted, metrics.accepted_tokens.value());
  const auto share_at = [&](size_t place) {
    return static_cast<double>(metrics.accepted_at[place].value()) /
           static_cast<double>(metrics.proposed_at[place].value());
  };
  EXPECT_NEAR(share_at(0), 0.75, 0.08);
  EXPECT_NEAR(share_at(1), 0.75 * 0.75, 0.1);
  EXPECT_GT(metrics.judged_steps.value(), 300u);
}

TEST(EngineSpeculation, ADraftModelMustHaveTheSameVocabulary) {
  Vocabulary target{.kind = VocabularyKind::kBytePair, .tokens = {{.text = "a"}, {.text = "b"}}};
  EXPECT_FALSE(vocabulary_difference(target, target));
  Vocabulary other = target;
  other.tokens[1].text = "c\n";
  EXPECT_EQ(vocabulary_difference(other, target), R"(its token 1 is 'c\x0a', not 'b')");
  Vocabulary longer = target;
  longer.tokens.push_back({.text = "d"});
  EXPECT_EQ(vocabulary_difference(longer, target), "its vocabulary has 3 tokens, not 2");
  EXPECT_EQ(vocabulary_difference({}, target), "it has no vocabulary");
  EXPECT_EQ(vocabulary_difference(target, {}), "the other model has no vocabulary");
}

TEST(EngineSpeculation, OffProposesNothing) {
  StandInOptions options = speculating_options(
      {.max_sequences = 8, .max_step_tokens = 256, .context = 256, .pool_blocks = 400});
  options.speculation = {};
  StandInEngine engine(options);
  expect_outputs_of_plain_decoding(engine, 10);
  EXPECT_EQ(engine->metrics().proposed_tokens.value(), 0u);
}

}  // namespace
}  // namespace hearth
