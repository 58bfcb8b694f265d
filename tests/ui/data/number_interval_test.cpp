#include "ui/data/number_interval.h"

#include <gtest/gtest.h>

#include "tests/ui/data/step_records.h"
#include "ui/data/latency_data.h"
#include "ui/data/occupancy_data.h"

namespace hearth {
namespace {

using test::arrival;
using test::decode;
using test::prompt;
using test::step;
using test::view_of;

EngineView at_time(double now, const char* policy) {
  EngineView view = view_of({});
  view.now = now;
  view.policy = *named_policy(policy);
  return view;
}

TEST(NumberRestarts, APolicyChangeAndTheUserRestartNumbers) {
  NumberRestarts restarts;
  EngineView view = at_time(1, "static");
  restarts.follow(view, 1);
  const uint64_t first = view.restart;
  EXPECT_EQ(view.restart_seconds, 0);
  view = at_time(2, "static");
  restarts.follow(view, 1);
  EXPECT_EQ(view.restart, first);
  view = at_time(3, "continuous");
  restarts.follow(view, 1);
  EXPECT_NE(view.restart, first);
  EXPECT_EQ(view.restart_seconds, 3);
  restarts.restart();
  const uint64_t second = view.restart;
  view = at_time(4, "continuous");
  restarts.follow(view, 1);
  EXPECT_NE(view.restart, second);
  EXPECT_EQ(view.restart_seconds, 4);
  // Another engine starts from its own beginning.
  view = at_time(1, "static");
  restarts.follow(view, 2);
  EXPECT_EQ(view.restart_seconds, 0);
}

TEST(NumberRestarts, TheIntervalIsInWords) {
  EXPECT_EQ(interval_words(30, 0, 100), "over the last 30 s");
  EXPECT_EQ(interval_words(30, 88, 100), "over 12 s, since the policy changed or Reset");
  EXPECT_EQ(interval_words(30, 0, 7), "over 7 s, since the start");
  EXPECT_EQ(interval_words(0, 0, 100), "over 100 s, since the start");
  EXPECT_EQ(interval_label(30, 0, 100), "last 30 s");
  EXPECT_EQ(interval_label(30, 88, 100), "12 s since the change");
  EXPECT_EQ(interval_label(30, 0, 7), "7 s so far");
  EXPECT_EQ(interval_label(0, 0, 7), "7 s since the start");
}

// Streams go on: the gap to the first token after the change is measured, those before are gone.
TEST(NumberRestarts, LatenciesStartOver) {
  LatencyData data;
  StepRecord first = step(1, 1.0, {prompt(1, 0, 8, true)});
  first.arrived = {arrival(1, 0.5)};
  data.update(view_of({first, step(2, 1.1, {decode(1, 8)}), step(3, 1.2, {decode(1, 9)})}));
  EXPECT_EQ(data.stats(LatencyKind::kTbt, LatencyData::Window::kAll).count, 2u);
  EngineView view = view_of({step(4, 1.5, {decode(1, 10)})});
  view.restart = 1;
  view.restart_seconds = 1.25;
  data.update(view);
  const LatencyStats stats = data.stats(LatencyKind::kTbt, LatencyData::Window::kAll);
  EXPECT_EQ(stats.count, 1u);
  EXPECT_NEAR(stats.p50, 0.3, 1e-9);
  EXPECT_EQ(data.stats(LatencyKind::kTtft, LatencyData::Window::kAll).count, 0u);
  EXPECT_EQ(data.from(LatencyData::Window::kRecent), 1.25);
}

TEST(NumberRestarts, PaddingAndBusyTimeStartOver) {
  OccupancyData data;
  StepRecord padded = step(1, 1.0, {decode(1, 8)});
  padded.padding_tokens = 3;
  data.update(view_of({padded}));
  EXPECT_EQ(data.sum(OccupancyData::Window::kAll).padding_share(), 0.75);
  EngineView view = view_of({step(2, 2.0, {decode(1, 9)})});
  view.restart = 1;
  view.restart_seconds = 1.5;
  data.update(view);
  const OccupancyBucket sum = data.sum(OccupancyData::Window::kAll);
  EXPECT_EQ(sum.padding_share(), 0);
  EXPECT_NEAR(sum.steps, 1, 1e-9);
  EXPECT_GE(sum.from, 1.5);
  // Steps from before that are shown again, as after scrubbing, do not count.
  OccupancyData again;
  view.new_steps.insert(view.new_steps.begin(), padded);
  again.update(view);
  EXPECT_EQ(again.sum(OccupancyData::Window::kAll).padding_share(), 0);
}

}  // namespace
}  // namespace hearth
