// A target for the time between tokens, on the modelled device: streams keep it, and hardly any
// throughput is lost.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tools/replay/prompt_maker.h"
#include "tools/replay/simulated_replay.h"
#include "tools/replay/synthetic_trace.h"

namespace hearth::testing {
namespace {

ReplayReport replay_with_target(const std::string& load, uint32_t target_ms,
                                const ModelledLimits& wanted) {
  const ModelledDevice device;
  const Trace trace = *make_synthetic_trace(load);
  const PromptMaker maker(text_token_ids(nullptr, device.vocabulary), 1);
  std::vector<std::vector<TokenId>> prompts;
  for (size_t i = 0; i < trace.requests.size(); ++i)
    prompts.push_back(maker.make(trace.requests[i], i));
  const Result<ReplayRun> run =
      simulate_replay(device, scheduler_limits(device, wanted), {.tbt_target_ms = target_ms},
                      {.trace = trace, .prompts = prompts, .begin = {}, .step = {}});
  EXPECT_TRUE(run.ok()) << run.error().message;
  return run.ok() ? make_report(*run, {}) : ReplayReport{};
}

TEST(TbtTarget, IsKeptAtNineTenthsOfTheThroughput) {
  for (const std::string load : {"rate=12,n=150,prompt=16..600,gen=8..120,seed=",
                                 "rate=4,n=80,prompt=16..3000,gen=8..200,seed=",
                                 "rate=inf,n=100,prompt=100..300,gen=40..80,seed="})
    for (const char* seed : {"1", "2", "3"}) {
      const ReplayReport without = replay_with_target(load + seed, 0, {.max_step_tokens = 512});
      for (const uint32_t target_ms : {25u, 40u}) {
        SCOPED_TRACE(load + seed + " target " + std::to_string(target_ms));
        const ReplayReport with =
            replay_with_target(load + seed, target_ms, {.max_step_tokens = 512});
        EXPECT_LE(with.tbt.p99, 1.12e-3 * target_ms);
        EXPECT_GE(with.throughput_tokens_per_s, 0.9 * without.throughput_tokens_per_s);
        // It would not be kept without trying.
        EXPECT_GT(without.tbt.p99, 1.12e-3 * target_ms);
      }
    }
}

TEST(TbtTarget, IsTheSameToTheLastByteEveryTime) {
  const std::string load = "rate=12,n=60,prompt=16..600,gen=8..120,seed=4";
  const std::string first = to_json(replay_with_target(load, 25, {})).dump();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(to_json(replay_with_target(load, 25, {})).dump(), first);
}

}  // namespace
}  // namespace hearth::testing
