#include "ui/data/occupancy_data.h"

#include <gtest/gtest.h>

#include "tests/ui/data/step_records.h"

namespace hearth {
namespace {

using test::decode;
using test::prompt;
using test::step;
using test::view_of;
using OccupancyWindow = OccupancyData::Window;

TEST(OccupancyData, AnEngineWithoutStepsIsIdle) {
  OccupancyData occupancy;
  occupancy.update({});
  occupancy.update(view_of({}));
  EXPECT_EQ(occupancy.sum(OccupancyWindow::kAll).busy_share(), 0);
  EXPECT_EQ(occupancy.generated_per_s(), 0);
  EXPECT_TRUE(occupancy.series(OccupancyWindow::kRecent).empty());
  EXPECT_EQ(occupancy.memory().scale_bytes(), 0u);
}

// Ten steps of 8 ms in one second, each with a prompt chunk of 6 tokens, two decodes and one
// padding token.
std::vector<StepRecord> one_second() {
  std::vector<StepRecord> steps;
  for (uint32_t i = 0; i < 10; ++i) {
    StepRecord record =
        step(i + 1, 0.1 * i + 0.05, {prompt(1, 6 * i, 6), decode(2, i), decode(3, i)});
    record.padding_tokens = 1;
    record.counts = {.waiting = i, .running = 3, .swapped = 1};
    steps.push_back(record);
  }
  return steps;
}

TEST(OccupancyData, SharesAndRatesOverOneSecond) {
  OccupancyData occupancy;
  EngineView view = view_of(one_second());
  view.now = 1.0;
  view.limits.max_sequences = 16;
  occupancy.update(view);
  const OccupancyBucket sum = occupancy.sum(OccupancyWindow::kAll);
  EXPECT_NEAR(sum.steps, 10, 1e-9);
  EXPECT_NEAR(sum.batch(), 3, 1e-9);
  EXPECT_NEAR(sum.busy_share(), 0.08, 1e-9);
  EXPECT_NEAR(sum.padding_share(), 1.0 / 9, 1e-9);
  EXPECT_NEAR(sum.generated_per_s(), 20, 1e-9);
  EXPECT_NEAR(sum.prompt_per_s(), 60, 1e-9);
  EXPECT_EQ(occupancy.generated_per_s(), 20);
  EXPECT_EQ(occupancy.prompt_per_s(), 60);
  EXPECT_EQ(occupancy.steps_per_s(), 10);
  EXPECT_EQ(occupancy.batch(), 3u);
  EXPECT_EQ(occupancy.counts().waiting, 9u);
  EXPECT_EQ(occupancy.max_sequences(), 16u);
  EXPECT_EQ(sum.waiting, 9u);
  EXPECT_EQ(sum.swapped, 1u);
}

TEST(OccupancyData, TokensPerSecondCoverTheLastSecond) {
  OccupancyData occupancy;
  occupancy.update(view_of(one_second()));
  EngineView idle = view_of({});
  idle.now = 1.5;  // steps at 0.55 and later are within a second
  occupancy.update(idle);
  EXPECT_EQ(occupancy.generated_per_s(), 10);
  idle.now = 9;
  occupancy.update(idle);
  EXPECT_EQ(occupancy.generated_per_s(), 0);
}

// The last step's counts still include the requests that ended with it; the gauges do not.
TEST(OccupancyData, NothingRunsAfterTheLastStep) {
  OccupancyData occupancy;
  occupancy.update(view_of(one_second()));
  EXPECT_GT(occupancy.series(OccupancyWindow::kRecent).back().waiting, 0u);
  EngineView idle = view_of({});
  idle.counts = {};
  for (const double now : {1.5, 9.0}) {
    idle.now = now;
    occupancy.update(idle);
    EXPECT_EQ(occupancy.series(OccupancyWindow::kRecent).back().running, 0u) << now;
    EXPECT_EQ(occupancy.series(OccupancyWindow::kRecent).back().waiting, 0u) << now;
    EXPECT_EQ(occupancy.series(OccupancyWindow::kAll).back().waiting, 0u) << now;
  }
}

TEST(OccupancyData, ALongStepIsSpreadOverItsTime) {
  OccupancyData occupancy;
  StepRecord slow = step(2, 3.0, {decode(1, 5)});
  slow.run_seconds = 2;
  occupancy.update(view_of({step(1, 0.5, {decode(1, 4)}), slow}));
  const auto& series = occupancy.series(OccupancyWindow::kRecent);
  for (const OccupancyBucket& bucket : series) {
    EXPECT_LE(bucket.run_seconds, bucket.to - bucket.from + 1e-9);
    if (bucket.from < 1.0 || bucket.to > 3.0) continue;
    EXPECT_NEAR(bucket.busy_share(), 1, 1e-9) << bucket.from;
    EXPECT_NEAR(bucket.generated_per_s(), 0.5, 1e-9) << bucket.from;
  }
  EXPECT_NEAR(occupancy.sum(OccupancyWindow::kRecent).run_seconds, 2.008, 1e-9);
}

TEST(OccupancyData, GaugesCarryOverWithoutSteps) {
  OccupancyData occupancy;
  StepRecord record = step(1, 0.1, {decode(1, 4)});
  record.counts.running = 5;
  EngineView view = view_of({record});
  view.now = 2;
  occupancy.update(view);
  EXPECT_EQ(occupancy.series(OccupancyWindow::kRecent).back().running, 5u);
  EXPECT_GE(occupancy.series(OccupancyWindow::kRecent).back().to, 2);
  EXPECT_EQ(occupancy.series(OccupancyWindow::kRecent).back().generated_tokens, 0);
}

TEST(OccupancyData, WhilePausedTimeStandsStill) {
  OccupancyData occupancy;
  occupancy.update(view_of(one_second()));
  EngineView paused = view_of({});
  paused.now = 500;
  paused.state = EngineState::kPaused;
  occupancy.update(paused);
  EXPECT_EQ(occupancy.generated_per_s(), 20);
  EXPECT_NEAR(occupancy.now(), 0.95, 1e-9);
}

TEST(OccupancyData, ANewEngineResetsEverything) {
  OccupancyData occupancy;
  occupancy.update(view_of(one_second()));
  EngineView other = view_of({step(1, 0.2, {decode(1, 1)})});
  other.generation = 2;
  occupancy.update(other);
  EXPECT_NEAR(occupancy.sum(OccupancyWindow::kAll).steps, 1, 1e-9);
  EXPECT_DOUBLE_EQ(occupancy.now(), 0.2);
}

TEST(OccupancyData, MissedStepsAreSimplyAbsent) {
  OccupancyData occupancy;
  occupancy.update(view_of(one_second()));
  EngineView later = view_of({step(90, 9.0, {decode(1, 1)})});
  later.missed_steps = 79;
  occupancy.update(later);
  EXPECT_NEAR(occupancy.sum(OccupancyWindow::kAll).steps, 11, 1e-9);
}

TEST(OccupancyData, MemoryAgainstTheBudget) {
  OccupancyData occupancy;
  EngineView view = view_of({});
  view.memory = {{"weights", 300}, {"KV cache", 500}};
  view.memory_budget_bytes = 1000;
  occupancy.update(view);
  EXPECT_EQ(occupancy.memory().used_bytes, 800u);
  EXPECT_EQ(occupancy.memory().scale_bytes(), 1000u);
  view.memory_budget_bytes = 0;
  occupancy.update(view);
  EXPECT_EQ(occupancy.memory().scale_bytes(), 800u);
}

TEST(OccupancyData, HoursFitInFewBuckets) {
  OccupancyData occupancy;
  for (uint32_t i = 1; i <= 20000; ++i)
    occupancy.update(view_of({step(i, 0.5 * i, {decode(1, i)})}));
  EXPECT_LE(occupancy.series(OccupancyWindow::kAll).size(), OccupancyData::kMaxCoarseBuckets);
  EXPECT_LE(occupancy.series(OccupancyWindow::kRecent).size(), 243u);
  EXPECT_NEAR(occupancy.sum(OccupancyWindow::kAll).steps, 20000, 1e-6);
  EXPECT_NEAR(occupancy.sum(OccupancyWindow::kRecent).steps, 120, 1.1);

  // A night without steps does not grow the recent series.
  EngineView idle = view_of({});
  idle.now = 10000 + 8 * 3600;
  occupancy.update(idle);
  EXPECT_LE(occupancy.series(OccupancyWindow::kRecent).size(), 243u);
  EXPECT_LE(occupancy.series(OccupancyWindow::kAll).size(), OccupancyData::kMaxCoarseBuckets);
}

}  // namespace
}  // namespace hearth
