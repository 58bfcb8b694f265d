// Warm-up prepares every step and computes only those that it must.
#include "tools/replay/warm_up.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/replay/prompt_maker.h"
#include "tools/replay/synthetic_trace.h"

namespace hearth::testing {
namespace {

// Notes what it is asked to do.
class CountingExecutor final : public StepExecutor {
 public:
  Result<StepTicket> submit(const StepBatch& batch) override {
    if (fail_at > 0 && --fail_at == 0) return Error{ErrorKind::kDeviceLost, "lost"};
    ++steps;
    sampled_.assign(batch.sampling.size(), {});
    return StepTicket{.logit_rows = static_cast<uint32_t>(sampled_.size())};
  }
  Result<StepOutcome> wait(const StepTicket&) override { return StepOutcome{.sampled = sampled_}; }
  Status fork_blocks(std::span<const BlockMove>) override { return {}; }
  Status swap_out(std::span<const BlockMove>) override {
    ++swaps_out;
    return {};
  }
  Status swap_in(std::span<const BlockMove>) override {
    ++swaps_in;
    return {};
  }
  Status set_history(uint32_t, std::span<const params::TokenCount>) override { return {}; }
  Status set_biases(uint32_t, std::span<const params::TokenBias>) override { return {}; }

  // The first step with this many rows is new; the device has to compute it.
  Result<bool> prepare(const StepBatch& batch) {
    ++prepared;
    return sizes.insert(batch.rows()).second;
  }

  size_t prepared = 0, steps = 0, swaps_out = 0, swaps_in = 0, fail_at = 0;
  std::set<uint32_t> sizes;

 private:
  std::vector<params::SamplingResult> sampled_ = std::vector<params::SamplingResult>(16);
};

class WarmUp : public ::testing::Test {
 protected:
  Status run(std::span<const Policy> policies, const char* load) {
    const Trace trace = *make_synthetic_trace(load);
    const PromptMaker maker(text_token_ids(nullptr, 5000), 1);
    std::vector<std::vector<TokenId>> prompts;
    for (size_t i = 0; i < trace.requests.size(); ++i)
      prompts.push_back(maker.make(trace.requests[i], i));
    Progress progress("warming up", {.style = ProgressOutput::Style::kNone});
    std::vector<EngineOptions> engines;
    for (const Policy& policy : policies) {
      engines.push_back(options_);
      engines.back().policy = policy;
    }
    return warm_up(executor_, engines,
                   {.trace = trace, .prompts = prompts, .begin = {}, .step = {}}, progress);
  }

  EngineOptions options_{.limits = {.max_sequences = 8,
                                    .max_step_tokens = 128,
                                    .context = 512,
                                    .pool_blocks = 256,
                                    .swap_blocks = 64},
                         .vocabulary = 5000};
  CountingExecutor device_;
  WarmUpExecutor executor_{device_,
                           [this](const StepBatch& batch) { return device_.prepare(batch); }};
};

TEST_F(WarmUp, ComputesWhatIsNewOnceOverAllPolicies) {
  std::vector<Policy> policies;
  for (const std::string_view name : policy_names()) policies.push_back(*named_policy(name));
  ASSERT_TRUE(run(policies, "n=40,prompt=4..120,gen=8..60").ok());
  EXPECT_EQ(device_.steps, device_.sizes.size());
  EXPECT_GT(device_.steps, 10u);
  EXPECT_GT(device_.prepared, 3 * device_.steps);
  const size_t steps = device_.steps;
  ASSERT_TRUE(run(policies, "n=40,prompt=4..120,gen=8..60").ok());
  EXPECT_EQ(device_.steps, steps) << "nothing was new the second time";
}

TEST_F(WarmUp, SwapsOnceEachWay) {
  options_.limits.pool_blocks = 24;
  Policy policy;
  policy.preemption = Preemption::kSwap;
  ASSERT_TRUE(run(std::span(&policy, 1), "n=16,prompt=20,gen=100").ok());
  EXPECT_EQ(device_.swaps_out, 1u);
  EXPECT_EQ(device_.swaps_in, 1u);
}

TEST_F(WarmUp, ALostDeviceIsAnError) {
  device_.fail_at = 3;
  const Policy policy;
  const Status status = run(std::span(&policy, 1), "n=16,prompt=20,gen=100");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "lost");
}

}  // namespace
}  // namespace hearth::testing
