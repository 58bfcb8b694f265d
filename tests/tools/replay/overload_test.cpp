// More requests than the modelled device can serve: what is accepted is still served well.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tools/replay/prompt_maker.h"
#include "tools/replay/simulated_replay.h"
#include "tools/replay/synthetic_trace.h"

namespace hearth::testing {
namespace {

constexpr ServiceGoal kOverloadGoal{.time_to_first_token = 1, .time_between_tokens = 0.1};

ReplayReport replay_at_rate(double requests_per_s, uint32_t max_wait_ms) {
  const ModelledDevice device;
  const Trace trace = *make_synthetic_trace("rate=" + std::to_string(requests_per_s) +
                                            ",n=400,prompt=16..400,gen=8..120,seed=1");
  const PromptMaker maker(text_token_ids(nullptr, device.vocabulary), 1);
  std::vector<std::vector<TokenId>> prompts;
  for (size_t i = 0; i < trace.requests.size(); ++i)
    prompts.push_back(maker.make(trace.requests[i], i));
  const Result<ReplayRun> run =
      simulate_replay(device, scheduler_limits(device, {}), {.max_wait_ms = max_wait_ms},
                      {.trace = trace, .prompts = prompts, .begin = {}, .step = {}});
  EXPECT_TRUE(run.ok()) << run.error().message;
  return run.ok() ? make_report(*run, kOverloadGoal) : ReplayReport{};
}

TEST(Overload, GoodputDoesNotCollapse) {
  constexpr uint32_t kWaitMs = 500;
  const double at_capacity = replay_at_rate(16, kWaitMs).goodput;
  EXPECT_GT(at_capacity, 8);
  for (const double rate : {24.0, 48.0}) {
    const ReplayReport limited = replay_at_rate(rate, kWaitMs);
    EXPECT_GT(limited.goodput, 0.8 * at_capacity) << rate;
    EXPECT_GT(limited.refused, 0u) << rate;
    EXPECT_EQ(limited.failed, 0u);
    // If all requests queue, hardly any is served in time.
    const ReplayReport queued = replay_at_rate(rate, 0);
    EXPECT_EQ(queued.refused, 0u);
    EXPECT_LT(queued.goodput, 0.5 * limited.goodput) << rate;
  }
}

TEST(Overload, NothingIsRefusedWithoutOverload) {
  const ReplayReport report = replay_at_rate(5, 500);
  EXPECT_EQ(report.refused, 0u);
  EXPECT_EQ(report.met_goal, report.requests);
}

}  // namespace
}  // namespace hearth::testing
