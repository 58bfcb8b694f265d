// Step times on made-up devices, where the right answer is known.
#include "engine/scheduling/step_times.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace hearth {
namespace {

// A device as the roofline has it: flat as long as reading the weights takes longer than the
// arithmetic, then in proportion to rows; and attention.
struct RooflineDevice {
  double overhead = 0.4e-3, weights = 7e-3, row = 0.2e-3;
  double prompt_key = 33e-9, decode_key = 180e-9;

  double seconds(const StepLoad& load) const {
    return overhead + std::max(weights, row * load.rows) +
           prompt_key * static_cast<double>(load.prompt_keys) +
           decode_key * static_cast<double>(load.decode_keys);
  }
};

StepLoad decodes_of(std::uint32_t sequences, std::uint64_t context) {
  StepLoad load;
  for (std::uint32_t i = 0; i < sequences; ++i) load.add_decode(context, 1);
  return load;
}

TEST(StepTimes, KnowsNothingAtFirst) {
  const StepTimes times;
  EXPECT_EQ(times.seconds({.rows = 4}), std::nullopt);
  EXPECT_EQ(times.most_prompt_tokens({.rows = 4}, 0, 100, 1.0), 0u);
}

TEST(StepTimes, CountsTheKeysOfEveryRow) {
  StepLoad load;
  load.add_prompt(10, 3);  // 11 + 12 + 13
  load.add_decode(99, 1);
  EXPECT_EQ(load.rows, 4u);
  EXPECT_EQ(load.prompt_keys, 36u);
  EXPECT_EQ(load.decode_keys, 100u);
}

TEST(StepTimes, ApproachesALimitFromBelow) {
  const RooflineDevice device{.prompt_key = 0, .decode_key = 0};
  StepTimes times;
  const StepLoad decodes = decodes_of(8, 100);
  times.add(decodes, device.seconds(decodes));
  std::uint32_t tokens = 0, rounds = 0;
  for (; rounds < 10; ++rounds) {
    const std::uint32_t more = times.most_prompt_tokens(decodes, 0, 4096, 0.025);
    ASSERT_GE(more, tokens);
    if (more == tokens) break;
    tokens = more;
    StepLoad load = decodes;
    load.add_prompt(0, tokens);
    ASSERT_LE(device.seconds(load), 0.025);
    times.add(load, device.seconds(load));
  }
  // 25 ms are 123 rows; 120 is the largest recorded size within.
  EXPECT_EQ(tokens + decodes.rows, 120u);
  EXPECT_LE(rounds, 8u);
}

TEST(StepTimes, LearnsWhatAttentionCosts) {
  const RooflineDevice device;
  StepTimes times;
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) {
    const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
    StepLoad load = decodes_of(1 + below(16), below(2000));
    if (below(2) == 0) load.add_prompt(below(4000), 1 + below(200));
    times.add(load, device.seconds(load));
  }
  for (const std::uint64_t position : {0u, 1000u, 3800u}) {
    StepLoad load = decodes_of(12, 700);
    load.add_prompt(position, 120);
    EXPECT_NEAR(*times.seconds(load) / device.seconds(load), 1, 0.05) << position;
  }
}

TEST(StepTimes, OneSlowStepDoesNotLast) {
  StepTimes times;
  const auto add = [&](std::uint32_t rows, double seconds) { times.add({.rows = rows}, seconds); };
  for (int i = 0; i < 8; ++i) add(8, 0.010);
  // The first step of a size had to record its commands.
  add(100, 1.0);
  EXPECT_LT(*times.seconds({.rows = 90}), 0.2);
  add(100, 0.020);
  EXPECT_NEAR(*times.seconds({.rows = 100}), 0.020, 1e-9);
  // And a late one had bad luck.
  for (int i = 0; i < 8; ++i) add(100, 0.020);
  add(100, 5.0);
  EXPECT_LT(*times.seconds({.rows = 100}), 0.0225);
}

TEST(StepTimes, FollowsADeviceThatChanges) {
  StepTimes times;
  for (int i = 0; i < 50; ++i) times.add({.rows = 64}, 0.010);
  for (int i = 0; i < 50; ++i) times.add({.rows = 64}, 0.030);
  EXPECT_NEAR(*times.seconds({.rows = 64}), 0.030, 0.001);
}

TEST(StepTimes, NonsenseIsIgnored) {
  StepTimes times;
  times.add({.rows = 0}, 1);
  times.add({.rows = 1}, 0);
  times.add({.rows = 1}, -1);
  times.add({.rows = 1}, std::numeric_limits<double>::quiet_NaN());
  times.add({.rows = 1}, std::numeric_limits<double>::infinity());
  times.add({.rows = StepTimes::kMostRows + 1}, 1);
  EXPECT_EQ(times.seconds({.rows = 1}), std::nullopt);
  times.add({.rows = StepTimes::kMostRows}, 1);
  EXPECT_EQ(times.seconds({.rows = StepTimes::kMostRows}), 1.0);
}

}  // namespace
}  // namespace hearth
