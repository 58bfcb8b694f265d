// The steps that --profile runs are like those that the engine runs in the timed tests: greedy,
// without log-probabilities.
#include <algorithm>

#include <gtest/gtest.h>

#include "engine/sampling/sampler.h"
#include "tools/bench/model_bench.h"

namespace hearth::testing {
namespace {

TEST(BenchStep, IsGreedyAndWantsTheLastLogitsOfEverySequence) {
  const StepBatch step = bench_step(3, 20, 5);
  EXPECT_EQ(step.rows(), 15u);
  EXPECT_EQ(step.sequences.size(), 3u);
  EXPECT_EQ(step.logit_rows, (std::vector<uint32_t>{4, 9, 14}));
  ASSERT_EQ(step.sampling.size(), 3u);
  EXPECT_TRUE(std::ranges::all_of(step.sampling, is_plainly_greedy));
  for (const params::SamplingRow& row : step.sampling)
    EXPECT_NE(row.flags & params::kSamplingActive, 0u);
  // Each sequence has its own blocks, for 25 tokens.
  EXPECT_EQ(step.block_tables, (std::vector<uint32_t>{0, 1, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace hearth::testing
