// Replays on the stand-in executor: every request gets its tokens in time, and the numbers add up.
#include "tools/replay/replay_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/stand_in_engine.h"
#include "tools/replay/prompt_maker.h"
#include "tools/replay/synthetic_trace.h"

namespace hearth::testing {
namespace {

using std::chrono::microseconds;

constexpr SchedulerLimits kLimits{
    .max_sequences = 4, .max_step_tokens = 64, .context = 256, .pool_blocks = 64};

std::vector<std::vector<TokenId>> make_prompts(const Trace& trace) {
  const PromptMaker maker(text_token_ids(nullptr, 5000), 1);
  std::vector<std::vector<TokenId>> prompts;
  for (size_t i = 0; i < trace.requests.size(); ++i)
    prompts.push_back(maker.make(trace.requests[i], i));
  return prompts;
}

ReplayRun replay(StandInEngine& engine, const Trace& trace, StepSink sink = {}) {
  auto run = run_replay(
      *engine, {.trace = trace, .prompts = make_prompts(trace), .begin = {}, .step = sink});
  EXPECT_TRUE(run.ok()) << run.error().message;
  return run.ok() ? std::move(*run) : ReplayRun{};
}

TEST(ReplayRunner, EveryRequestGetsItsTokensUnderEveryPolicy) {
  const Trace trace = *make_synthetic_trace("n=24,prompt=4..40,gen=1..30");
  for (const std::string_view name : policy_names()) {
    SCOPED_TRACE(name);
    StandInEngine engine({.limits = kLimits}, *named_policy(name));
    uint64_t steps = 0;
    const ReplayRun run = replay(engine, trace, [&](const StepRecord&) { ++steps; });
    ASSERT_EQ(run.requests.size(), trace.requests.size());
    for (size_t i = 0; i < run.requests.size(); ++i) {
      const RequestTiming& request = run.requests[i];
      EXPECT_FALSE(request.failed);
      ASSERT_EQ(request.token_times.size(), trace.requests[i].generated_tokens) << i;
      EXPECT_GE(request.token_times.front(), run.begin);
      EXPECT_TRUE(std::is_sorted(request.token_times.begin(), request.token_times.end()));
    }
    EXPECT_EQ(run.prompt_tokens, trace.prompt_tokens());
    EXPECT_EQ(steps, run.steps.steps);
    // Every prompt token and every generated one but the last is computed once, or more often after
    // a preemption.
    const uint64_t once = trace.prompt_tokens() + trace.generated_tokens() - trace.requests.size();
    EXPECT_GE(run.steps.tokens + run.hit_tokens, once);
    const ReplayReport report = make_report(run, {});
    EXPECT_EQ(report.generated_tokens, trace.generated_tokens());
    EXPECT_GT(report.occupancy, 0);
    EXPECT_LE(report.occupancy, 1);
    EXPECT_EQ(report.padding_share > 0, named_policy(name)->layout == Layout::kPadded);
  }
}

TEST(ReplayRunner, RequestsArriveWhenTheyAreDue) {
  Trace trace;
  for (const double arrival : {0.0, 0.05, 0.2})
    trace.requests.push_back(
        {.arrival_seconds = arrival, .prompt_tokens = 4, .generated_tokens = 2});
  StandInEngine engine({.limits = kLimits});
  const ReplayRun run = replay(engine, trace);
  ASSERT_EQ(run.requests.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(run.requests[i].arrival - run.begin, trace.requests[i].arrival_seconds, 1e-9);
    EXPECT_GE(run.requests[i].time_to_first_token(), 0);
  }
}

TEST(ReplayRunner, MeasuresTheTimeOfSteps) {
  Trace trace;
  trace.requests.push_back({.prompt_tokens = 200, .generated_tokens = 6});
  StandInEngine engine({.limits = kLimits});
  engine.executor().delay = microseconds(5000);
  const ReplayRun run = replay(engine, trace);
  ASSERT_EQ(run.requests.size(), 1u);
  // Never earlier; how much later depends on the machine. The prompt takes four steps, and only the
  // last of them samples a token.
  EXPECT_GE(run.requests[0].time_to_first_token(), 0.020);
  EXPECT_GE(run.requests[0].time_per_output_token(), 0.005);
  EXPECT_GE(run.requests[0].end_to_end(), 0.045);
  EXPECT_GE(run.steps.busy_seconds, 0.045);
}

TEST(ReplayRunner, SharedPrefixesAreFound) {
  const Trace trace = *make_synthetic_trace("n=8,prompt=4,gen=40,prefix=64");
  SchedulerLimits limits = kLimits;
  limits.max_sequences = 2;
  StandInEngine engine({.limits = limits});
  const ReplayRun run = replay(engine, trace);
  EXPECT_EQ(run.cached_tokens.front(), 0u);
  EXPECT_EQ(run.cached_tokens.back(), 64u);
  EXPECT_GT(make_report(run, {}).prefix_hit_share, 0.5);
}

TEST(ReplayRunner, PreemptionsAreCounted) {
  const Trace trace = *make_synthetic_trace("n=8,prompt=16,gen=60");
  SchedulerLimits limits = kLimits;
  limits.pool_blocks = 10;
  StandInEngine engine({.limits = limits});
  const ReplayRun run = replay(engine, trace);
  EXPECT_GT(make_report(run, {}).preemptions(), 0u);
  for (const RequestTiming& request : run.requests) EXPECT_EQ(request.token_times.size(), 60u);
}

TEST(ReplayRunner, ALostDeviceEndsTheReplayWithAnError) {
  const Trace trace = *make_synthetic_trace("n=8,prompt=16,gen=60");
  StandInEngine engine({.limits = kLimits});
  engine.executor().faults.wait.arm(5);
  const auto run = run_replay(
      *engine, {.trace = trace, .prompts = make_prompts(trace), .begin = {}, .step = {}});
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().kind, ErrorKind::kDeviceLost);
}

TEST(ReplayRunner, ARequestThatNeverFitsIsRefusedWithTheReason) {
  Trace trace;
  trace.requests.push_back({.prompt_tokens = 400, .generated_tokens = 6});
  StandInEngine engine({.limits = kLimits});
  const auto run = run_replay(
      *engine, {.trace = trace, .prompts = make_prompts(trace), .begin = {}, .step = {}});
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(run.error().message, ::testing::HasSubstr("400"));
}

}  // namespace
}  // namespace hearth::testing
