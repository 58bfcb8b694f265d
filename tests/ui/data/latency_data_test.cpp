#include "ui/data/latency_data.h"

#include <gtest/gtest.h>

#include "tests/ui/data/step_records.h"

namespace hearth {
namespace {

using test::arrival;
using test::decode;
using test::prompt;
using test::step;
using test::view_of;
using LatencyWindow = LatencyData::Window;

// A request that arrives at 0.5 s and gets tokens at 1.0, 1.1, 1.3 and 1.6 s.
std::vector<StepRecord> four_tokens() {
  StepRecord first = step(1, 1.0, {prompt(1, 0, 8, true)});
  first.arrived = {arrival(1, 0.5)};
  StepRecord last = step(4, 1.6, {decode(1, 10)});
  last.finished = {1};
  return {first, step(2, 1.1, {decode(1, 8)}), step(3, 1.3, {decode(1, 9)}), last};
}

TEST(LatencyData, AnIdleEngineHasNoLatencies) {
  LatencyData latency;
  latency.update({});
  latency.update(view_of({}));
  for (const LatencyKind kind : {LatencyKind::kTtft, LatencyKind::kTbt, LatencyKind::kTpot}) {
    EXPECT_EQ(latency.stats(kind, LatencyWindow::kAll).count, 0u);
    EXPECT_TRUE(latency.histogram(kind, LatencyWindow::kRecent, 8).empty());
  }
  EXPECT_TRUE(latency.series(LatencyWindow::kAll).empty());
}

TEST(LatencyData, TheThreeLatenciesOfOneStream) {
  LatencyData latency;
  latency.update(view_of(four_tokens()));
  const LatencyStats ttft = latency.stats(LatencyKind::kTtft, LatencyWindow::kRecent);
  EXPECT_EQ(ttft.count, 1u);
  EXPECT_NEAR(ttft.p50, 0.5, 1e-12);
  const LatencyStats tbt = latency.stats(LatencyKind::kTbt, LatencyWindow::kRecent);
  EXPECT_EQ(tbt.count, 3u);
  EXPECT_NEAR(tbt.p50, 0.2, 1e-12);
  EXPECT_NEAR(tbt.p99, 0.3, 1e-12);
  EXPECT_NEAR(tbt.mean, 0.2, 1e-12);
  const LatencyStats tpot = latency.stats(LatencyKind::kTpot, LatencyWindow::kRecent);
  EXPECT_EQ(tpot.count, 1u);
  EXPECT_NEAR(tpot.p50, 0.2, 1e-12);

  const LatencyStream* stream = latency.find(1);
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(stream->tokens, 4u);
  EXPECT_TRUE(stream->finished);
  EXPECT_NEAR(stream->ttft(), 0.5, 1e-12);
  EXPECT_NEAR(stream->tpot(), 0.2, 1e-12);
  EXPECT_NEAR(latency.stats(*stream, LatencyWindow::kAll).p90, 0.3, 1e-12);
}

TEST(LatencyData, APromptChunkWithoutSamplingIsNoToken) {
  LatencyData latency;
  StepRecord first = step(1, 1.0, {prompt(1, 0, 8)});
  first.arrived = {arrival(1, 0.5)};
  latency.update(view_of({first, step(2, 2.0, {prompt(1, 8, 4, true)})}));
  EXPECT_NEAR(latency.stats(LatencyKind::kTtft, LatencyWindow::kAll).p50, 1.5, 1e-12);
  EXPECT_EQ(latency.stats(LatencyKind::kTbt, LatencyWindow::kAll).count, 0u);
}

TEST(LatencyData, WithoutAnArrivalThereIsNoTtft) {
  LatencyData latency;
  latency.update(view_of({step(1, 1.0, {decode(1, 8)}), step(2, 1.25, {decode(1, 9)})}));
  EXPECT_EQ(latency.stats(LatencyKind::kTtft, LatencyWindow::kAll).count, 0u);
  EXPECT_NEAR(latency.stats(LatencyKind::kTbt, LatencyWindow::kAll).p50, 0.25, 1e-12);
}

TEST(LatencyData, ATokenOfAStepInFlightAtTheEndIsNotCounted) {
  LatencyData latency;
  std::vector<StepRecord> steps = four_tokens();
  steps.push_back(step(5, 9.0, {decode(1, 11)}));
  latency.update(view_of(steps));
  EXPECT_EQ(latency.stats(LatencyKind::kTbt, LatencyWindow::kAll).count, 3u);
}

TEST(LatencyData, TheRecentWindowMovesWhileTheWholeRunIsKept) {
  LatencyData latency;
  latency.update(view_of(four_tokens()));
  EngineView idle = view_of({});
  idle.now = 1.2 + LatencyData::kRecentSeconds;  // the gap that ended at 1.1 s is out of the window
  latency.update(idle);
  EXPECT_EQ(latency.stats(LatencyKind::kTbt, LatencyWindow::kRecent).count, 2u);
  EXPECT_EQ(latency.stats(LatencyKind::kTtft, LatencyWindow::kRecent).count, 0u);
  EXPECT_EQ(latency.stats(LatencyKind::kTbt, LatencyWindow::kAll).count, 3u);
  EXPECT_DOUBLE_EQ(latency.from(LatencyWindow::kRecent), 1.2);
  std::vector<const LatencyStream*> streams;
  latency.streams(LatencyWindow::kRecent, streams);
  EXPECT_EQ(streams.size(), 1u);

  idle.now = 100;
  latency.update(idle);
  latency.streams(LatencyWindow::kRecent, streams);
  EXPECT_TRUE(streams.empty());
}

TEST(LatencyData, WhilePausedTimeStandsStill) {
  LatencyData latency;
  latency.update(view_of(four_tokens()));
  EngineView paused = view_of({});
  paused.now = 1000;
  paused.state = EngineState::kPaused;
  latency.update(paused);
  EXPECT_EQ(latency.stats(LatencyKind::kTbt, LatencyWindow::kRecent).count, 3u);
}

TEST(LatencyData, MissedStepsAreNotCountedAsALongGap) {
  LatencyData latency;
  std::vector<StepRecord> steps = four_tokens();
  steps.pop_back();
  latency.update(view_of(steps));
  StepRecord last = step(91, 9.1, {decode(1, 99)});
  last.finished = {1};
  EngineView later = view_of({step(90, 9.0, {decode(1, 98)}), last});
  later.missed_steps = 86;
  latency.update(later);
  const LatencyStats tbt = latency.stats(LatencyKind::kTbt, LatencyWindow::kAll);
  EXPECT_EQ(tbt.count, 3u);
  EXPECT_NEAR(tbt.p99, 0.2, 1e-12);
  EXPECT_EQ(latency.stats(LatencyKind::kTpot, LatencyWindow::kAll).count, 0u);
}

TEST(LatencyData, ANewEngineResetsEverything) {
  LatencyData latency;
  latency.update(view_of(four_tokens()));
  EngineView other = view_of({step(1, 0.25, {decode(1, 3)})});
  other.generation = 2;
  latency.update(other);
  EXPECT_EQ(latency.stats(LatencyKind::kTbt, LatencyWindow::kAll).count, 0u);
  EXPECT_DOUBLE_EQ(latency.now(), 0.25);
}

TEST(LatencyData, SeriesHaveTheQuantilesOfEachInterval) {
  LatencyData latency;
  latency.update(view_of(four_tokens()));
  const std::vector<LatencyBucket> series = latency.series(LatencyWindow::kRecent);
  ASSERT_EQ(series.size(), 3u);  // from 1.0, 1.25 and 1.5
  EXPECT_DOUBLE_EQ(series[0].from, 1.0);
  EXPECT_NEAR(series[0].p50, 0.1, 1e-12);
  EXPECT_NEAR(series[1].p50, 0.2, 1e-12);
  EXPECT_NEAR(series[2].p99, 0.3, 1e-12);
  EXPECT_EQ(series[2].count, 1u);
}

TEST(LatencyData, ALongSeriesGetsCoarserButKeepsEveryToken) {
  LatencyData latency;
  for (uint32_t i = 0; i < 4000; ++i)
    latency.update(view_of({step(i, 0.25 * (i + 1), {decode(1, i)})}));
  const std::vector<LatencyBucket> series = latency.series(LatencyWindow::kAll);
  EXPECT_LE(series.size(), 1024u);
  EXPECT_GE(series.size(), 512u);
  size_t tokens = 0;
  for (const LatencyBucket& bucket : series) tokens += bucket.count;
  EXPECT_EQ(tokens, 3999u);
  EXPECT_DOUBLE_EQ(series.front().p99, 0.25);
}

TEST(LatencyData, MemoryIsBounded) {
  LatencyData latency;
  for (uint32_t i = 0; i < 4096; ++i) {
    StepRecord record = step(i, 0.01 * i);
    for (RequestId id = 1; id <= 64; ++id) record.members.push_back(decode(id, i));
    latency.update(view_of({record}));
    if (i % 16 == 0) latency.stats(LatencyKind::kTbt, LatencyWindow::kRecent);
  }
  EXPECT_EQ(latency.stats(LatencyKind::kTbt, LatencyWindow::kAll).count, LatencyData::kMaxSamples);
  EXPECT_EQ(latency.dropped(LatencyKind::kTbt), 4095u * 64 - LatencyData::kMaxSamples);
  EXPECT_LE(latency.find(1)->gaps.size(), LatencyData::kMaxGapsPerStream);
  EXPECT_NEAR(latency.stats(LatencyKind::kTbt, LatencyWindow::kRecent).p99, 0.01, 1e-9);
}

}  // namespace
}  // namespace hearth
