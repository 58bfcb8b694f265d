// Replays on the modelled device: the same numbers every time, and the ones the policies deserve.
#include "tools/replay/simulated_replay.h"

#include <chrono>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/replay/prompt_maker.h"
#include "tools/replay/synthetic_trace.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

// The load of the project's README.
constexpr const char* kReadmeLoad = "rate=inf,n=64,prompt=16..120,gen=8..96,seed=1";

std::vector<std::vector<TokenId>> prompts_within(const Trace& trace, uint32_t vocabulary) {
  const PromptMaker maker(text_token_ids(nullptr, vocabulary), 1);
  std::vector<std::vector<TokenId>> prompts;
  for (size_t i = 0; i < trace.requests.size(); ++i)
    prompts.push_back(maker.make(trace.requests[i], i));
  return prompts;
}

Result<ReplayRun> simulate(const Trace& trace, const Policy& policy,
                           const ModelledLimits& wanted = {}) {
  const ModelledDevice device;
  return simulate_replay(device, scheduler_limits(device, wanted), policy,
                         {.trace = trace,
                          .prompts = prompts_within(trace, device.vocabulary),
                          .begin = {},
                          .step = {}});
}

ReplayReport report_of(const Trace& trace, const Policy& policy,
                       const ModelledLimits& wanted = {}) {
  const Result<ReplayRun> run = simulate(trace, policy, wanted);
  EXPECT_TRUE(run.ok()) << run.error().message;
  return run.ok() ? make_report(*run, {}) : ReplayReport{};
}

std::string everything(const Trace& trace, const Policy& policy) {
  const Result<ReplayRun> run = simulate(trace, policy, {.kv_blocks = 100});
  EXPECT_TRUE(run.ok()) << run.error().message;
  if (!run.ok()) return {};
  return to_json(make_report(*run, {})).dump() + requests_to_json(*run).dump();
}

TEST(SimulatedReplay, IsTheSameToTheLastByteEveryTime) {
  // Arrivals while steps run, idle times between bursts, and preemptions.
  for (const char* load : {kReadmeLoad, "rate=30,n=60,prompt=16..400,gen=8..200,prefix=40,seed=2",
                           "rate=0.5,n=12,prompt=10,gen=20"})
    for (const std::string_view name : policy_names()) {
      SCOPED_TRACE(std::string(load) + " " + std::string(name));
      const Trace trace = *make_synthetic_trace(load);
      const std::string first = everything(trace, *named_policy(name));
      EXPECT_FALSE(first.empty());
      for (int i = 0; i < 4; ++i) EXPECT_EQ(everything(trace, *named_policy(name)), first);
    }
}

TEST(SimulatedReplay, RanksPoliciesAsAGpuDoes) {
  const Trace trace = *make_synthetic_trace(kReadmeLoad);
  std::map<std::string, ReplayReport> reports;
  for (const std::string_view name : policy_names())
    reports[std::string(name)] = report_of(trace, *named_policy(name));
  const auto throughput = [&](const char* name) { return reports[name].throughput_tokens_per_s; };
  // The order measured on an H200, where continuous batching has 1.46 times static's throughput.
  EXPECT_LT(throughput("static"), throughput("packed"));
  EXPECT_LT(throughput("packed"), throughput("continuous"));
  // Without a KV cache everything is computed again for each token. Mixed and padded, a decode is
  // padded to the length of the prompt chunks beside it.
  EXPECT_LT(throughput("no-cache"), throughput("iteration"));
  EXPECT_LT(throughput("iteration"), throughput("static"));
  EXPECT_GT(reports["iteration"].padding_share, reports["static"].padding_share);
  EXPECT_GT(throughput("continuous"), 1.3 * throughput("static"));
  EXPECT_LT(throughput("continuous"), 2 * throughput("static"));
  EXPECT_LT(reports["continuous"].ttft.mean, reports["static"].ttft.mean);
  EXPECT_GT(reports["continuous"].occupancy, reports["static"].occupancy);
}

TEST(SimulatedReplay, TakesNoRealTime) {
  // A request every ten seconds: a quarter of an hour.
  const Trace trace = *make_synthetic_trace("rate=0.1,n=100,prompt=100,gen=100");
  const auto start = std::chrono::steady_clock::now();
  const ReplayReport report = report_of(trace, {});
  EXPECT_GT(report.makespan_seconds, 500);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(SimulatedReplay, ARequestAloneTakesWhatTheDeviceTakes) {
  Trace trace;
  for (const double arrival : {0.0, 1.25, 2.5})
    trace.requests.push_back(
        {.arrival_seconds = arrival, .prompt_tokens = 100, .generated_tokens = 11});
  const ModelledDevice device;
  const Result<ReplayRun> run = simulate(trace, {});
  ASSERT_TRUE(run.ok()) << run.error().message;
  ASSERT_EQ(run->requests.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const RequestTiming& request = run->requests[i];
    EXPECT_NEAR(request.arrival, trace.requests[i].arrival_seconds, 1e-9);
    EXPECT_FALSE(request.failed);
    ASSERT_EQ(request.token_times.size(), 11u);
    const double prompt =
        step_seconds(device, {.rows = 100, .logit_rows = 1, .kv_tokens = 100, .row_keys = 5050});
    EXPECT_NEAR(request.time_to_first_token(), prompt, 1e-6);
    const double decode =
        step_seconds(device, {.rows = 1, .logit_rows = 1, .kv_tokens = 101, .row_keys = 101});
    EXPECT_NEAR(request.time_per_output_token(), decode, 2e-5);  // the context grows
  }
}

TEST(SimulatedReplay, ChunkedPromptsKeepTokensComing) {
  const Trace trace = *make_synthetic_trace("rate=3,n=40,prompt=800,gen=100");
  const ReplayReport whole = report_of(trace, {}, {.max_step_tokens = 2048});
  const ReplayReport chunked = report_of(trace, {}, {.max_step_tokens = 64});
  EXPECT_LT(chunked.tbt.p99, whole.tbt.p99 / 3);
}

TEST(SimulatedReplay, PreemptionsCostTime) {
  const Trace trace = *make_synthetic_trace("n=32,prompt=60..100,gen=100..200");
  const ModelledLimits roomy{}, small{.kv_blocks = 60, .swap_bytes = uint64_t{1} << 30};
  const ReplayReport never = report_of(trace, {}, roomy);
  EXPECT_EQ(never.preemptions(), 0u);
  for (const Preemption preemption : {Preemption::kRecompute, Preemption::kSwap}) {
    Policy policy;
    policy.preemption = preemption;
    const ReplayReport report = report_of(trace, policy, small);
    const bool swaps = preemption == Preemption::kSwap;
    EXPECT_EQ(report.preemptions_swap > 0, swaps);
    EXPECT_EQ(report.preemptions_recompute > 0, !swaps);
    EXPECT_GT(report.makespan_seconds, never.makespan_seconds);
    EXPECT_EQ(report.generated_tokens, never.generated_tokens);
  }
}

TEST(SimulatedReplay, SwapsTakeTheTimeOfTheHostLink) {
  const ModelledDevice device;
  Policy policy;
  policy.preemption = Preemption::kSwap;
  const ReplayReport report = report_of(*make_synthetic_trace("n=32,prompt=60..100,gen=100..200"),
                                        policy, {.kv_blocks = 60, .swap_bytes = uint64_t{1} << 30});
  ASSERT_GT(report.preemptions_swap, 0u);
  const auto block_bytes = static_cast<uint64_t>(device.kv_bytes_per_block());
  EXPECT_GT(report.swaps.out_bytes, 0u);
  EXPECT_EQ(report.swaps.out_bytes % block_bytes, 0u);
  EXPECT_EQ(report.swaps.in_bytes, report.swaps.out_bytes) << "what went out came back";
  // Every list of moves has an overhead, so the rate is below the link's.
  ASSERT_TRUE(report.swap_bytes_per_s().has_value());
  EXPECT_LT(*report.swap_bytes_per_s(), device.host_link_bytes_per_s);
  EXPECT_GT(*report.swap_bytes_per_s(), device.host_link_bytes_per_s / 4);
}

TEST(SimulatedReplay, TheDeviceIsBusyAllTheTimeUnlessItWaitsForRequests) {
  EXPECT_NEAR(report_of(*make_synthetic_trace("n=20,prompt=50,gen=40"), {}).busy_share, 1, 1e-6);
  // One request at a time: busy for as long as requests take, of the time until the next.
  const ReplayReport waits = report_of(*make_synthetic_trace("rate=0.1,n=20,prompt=50,gen=40"), {});
  EXPECT_NEAR(waits.busy_share, waits.e2e.mean * 20 / waits.makespan_seconds, 0.01);
  EXPECT_LT(waits.busy_share, 0.2);
}

TEST(SimulatedReplay, TokensDeliveredWithTheBatchArriveTogether) {
  Policy policy = *named_policy("static");
  ASSERT_EQ(policy.delivery, Delivery::kWithBatch);
  const Trace trace = *make_synthetic_trace("n=8,prompt=20,gen=4..40");
  const Result<ReplayRun> held = simulate(trace, policy, {.max_sequences = 4});
  ASSERT_TRUE(held.ok()) << held.error().message;
  policy.delivery = Delivery::kAtOnce;
  const Result<ReplayRun> at_once = simulate(trace, policy, {.max_sequences = 4});
  ASSERT_TRUE(at_once.ok()) << at_once.error().message;
  for (size_t i = 0; i < 8; ++i) {
    const std::vector<double>& times = held->requests[i].token_times;
    EXPECT_EQ(times.size(), trace.requests[i].generated_tokens);
    EXPECT_EQ(times.front(), times.back());
    EXPECT_GE(times.back() + 1e-9, at_once->requests[i].token_times.back());
  }
  // Two batches of four: every request of the first is delivered with its slowest.
  const auto delivered = [&](size_t i) { return held->requests[i].token_times.back(); };
  for (size_t i = 1; i < 4; ++i) EXPECT_NEAR(delivered(i), delivered(0), 1e-9);
  for (size_t i = 4; i < 8; ++i) EXPECT_GT(delivered(i), delivered(0));
}

TEST(SimulatedReplay, StepsAreSeenInOrder) {
  const Trace trace = *make_synthetic_trace("rate=20,n=20,prompt=30,gen=20");
  const ModelledDevice device;
  std::vector<uint64_t> steps;
  double begin = -1;
  const Result<ReplayRun> run =
      simulate_replay(device, scheduler_limits(device, {}), {},
                      {.trace = trace,
                       .prompts = prompts_within(trace, device.vocabulary),
                       .begin = [&](double seconds) { begin = seconds; },
                       .step = [&](const StepRecord& record) { steps.push_back(record.step); }});
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_EQ(begin, 0);
  EXPECT_EQ(steps.size(), run->steps.steps);
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
}

// The tokens are made up, so hardly any guess is right, and the device must not accept others.
TEST(SimulatedReplay, GuessesAreNotAcceptedForNothing) {
  const Trace trace = *make_synthetic_trace("rate=inf,n=8,prompt=40,gen=60,seed=1");
  const ModelledDevice device;
  uint32_t proposed = 0, accepted = 0;
  const auto count = [&](const StepRecord& record) {
    for (const StepMember& member : record.members) {
      proposed += member.proposed;
      accepted += member.accepted;
    }
  };
  const Result<ReplayRun> run =
      simulate_replay(device, scheduler_limits(device, {}), {},
                      {.trace = trace,
                       .prompts = prompts_within(trace, device.vocabulary),
                       .begin = {},
                       .step = count},
                      {.method = SpeculationMethod::kLookahead});
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_GT(proposed, 100u);
  EXPECT_LT(accepted, proposed / 100);
}

TEST(SimulatedReplay, ARequestThatNeverFitsIsRefusedWithTheReason) {
  Trace trace = *make_synthetic_trace("rate=5,n=4,prompt=10,gen=5");
  trace.requests[2].prompt_tokens = 400;
  const Result<ReplayRun> run = simulate(trace, {}, {.context = 256});
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(run.error().message, HasSubstr("400"));
}

}  // namespace
}  // namespace hearth::testing
