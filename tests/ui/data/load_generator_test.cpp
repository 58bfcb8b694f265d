// The load generator with an engine on the stand-in executor: what it submits, when, and its
// counts.
#include "ui/data/load_generator.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/stand_in_engine.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

constexpr SchedulerLimits kLimits{.max_sequences = 8,
                                  .max_step_tokens = 256,
                                  .context = 512,
                                  .pool_blocks = 400,
                                  .max_queue = 200};

// A load generator driven by a clock of the test's own.
class Driven {
 public:
  explicit Driven(uint64_t seed = 1, SchedulerLimits limits = kLimits)
      : load(seed), engine_({.limits = limits}, {}, nullptr, /*start_paused=*/true) {}

  void frames(double seconds, double per_second = 60) {
    const auto count = static_cast<int>(seconds * per_second + 0.5);
    for (int i = 0; i < count; ++i) {
      now_ += 1 / per_second;
      load.update({.engine = &*engine_, .generation = generation, .shown = shown}, now_);
    }
  }
  bool settles() {
    engine_->resume();
    return comes_true([&] {
      frames(0.02);
      return load.counts().unanswered == 0 && !load.reading_trace();
    });
  }
  // Waits until the trace is read or rejected, without advancing the clock.
  bool reads() {
    return comes_true([&] {
      load.update({.engine = &*engine_, .generation = generation}, now_);
      return !load.reading_trace();
    });
  }
  // All arrivals in the engine's step records. REQUIRES: settles() has returned true.
  std::vector<StepRecord::Arrival> arrivals() {
    engine_->inspect([](const Scheduler&) {});
    std::vector<StepRecord::Arrival> all;
    StepRecord record;
    for (uint64_t i = 0; i < engine_->records().written(); ++i)
      if (engine_->records().read(i, record))
        all.insert(all.end(), record.arrived.begin(), record.arrived.end());
    return all;
  }
  // Of any step's batch. REQUIRES: settles() has returned true.
  size_t most_members() {
    engine_->inspect([](const Scheduler&) {});
    size_t most = 0;
    StepRecord record;
    for (uint64_t i = 0; i < engine_->records().written(); ++i)
      if (engine_->records().read(i, record)) most = std::max(most, record.members.size());
    return most;
  }
  StandInEngine& engine() { return engine_; }

  LoadGenerator load;
  uint64_t generation = 1;
  std::span<const SequenceView> shown;

 private:
  StandInEngine engine_;
  double now_ = 100;
};

TEST(LoadGenerator, SubmitsAtItsRateOnlyWhileStarted) {
  Driven driven;
  driven.load.settings.rate = 5;
  driven.frames(10);
  EXPECT_EQ(driven.load.counts().sent, 0u);
  driven.load.start();
  driven.frames(20);
  // 100 expected, with a standard deviation of 10.
  EXPECT_GT(driven.load.counts().sent, 60u);
  EXPECT_LT(driven.load.counts().sent, 140u);
  const uint64_t before = driven.load.counts().sent;
  driven.load.stop();
  driven.frames(10);
  EXPECT_EQ(driven.load.counts().sent, before);
  driven.load.settings.rate = 0;
  driven.load.start();
  driven.frames(10);
  EXPECT_EQ(driven.load.counts().sent, before) << "a rate of 0";
}

TEST(LoadGenerator, LengthsLieInTheirRanges) {
  Driven driven;
  driven.load.settings = {.rate = 0,
                          .prompt_min = 30,
                          .prompt_max = 10,
                          .generate_min = 3,
                          .generate_max = 5,
                          .shared_prefix = 32};
  driven.load.burst(50);
  driven.frames(0.1);
  EXPECT_EQ(driven.load.counts().unanswered, 50u);
  ASSERT_TRUE(driven.settles());
  const std::vector<StepRecord::Arrival> arrivals = driven.arrivals();
  ASSERT_EQ(arrivals.size(), 50u);
  std::map<uint32_t, int> prompts, generated;
  for (const StepRecord::Arrival& arrival : arrivals) {
    ++prompts[arrival.prompt_tokens - 32];
    ++generated[arrival.max_tokens - arrival.prompt_tokens];
  }
  EXPECT_GE(prompts.begin()->first, 10u) << "a reversed range is accepted";
  EXPECT_LE(prompts.rbegin()->first, 30u);
  EXPECT_GT(prompts.size(), 10u);
  EXPECT_EQ(generated.begin()->first, 3u);
  EXPECT_EQ(generated.rbegin()->first, 5u);
  uint64_t tokens = 0;
  for (const auto& [length, count] : generated)
    tokens += uint64_t{length} * static_cast<uint64_t>(count);
  EXPECT_EQ(driven.load.counts().tokens, tokens);
  EXPECT_EQ(driven.load.counts().answered, 50u);
  EXPECT_EQ(driven.load.counts().failed, 0u);
  // Later prompts find the first one's 32 tokens in the prefix cache.
  EXPECT_GE(driven.engine()->metrics().prefix_hit_tokens.value(), 40u * 32u);
}

TEST(LoadGenerator, ABurstArrivesInOneStep) {
  Driven driven;
  driven.load.burst(8);
  driven.frames(0.1);
  ASSERT_TRUE(driven.settles());
  StepRecord first;
  ASSERT_TRUE(driven.engine()->records().read(0, first));
  EXPECT_EQ(first.arrived.size(), 8u);
}

TEST(LoadGenerator, TheSameSeedGivesTheSameRequests) {
  const auto lengths = [](uint64_t seed) {
    Driven driven(seed);
    driven.load.settings.rate = 20;
    driven.load.settings.generate_max = 12;  // the stand-in keeps records of 256 steps
    driven.load.start();
    driven.frames(2);
    driven.load.stop();
    EXPECT_TRUE(driven.settles());
    std::vector<std::pair<uint32_t, uint32_t>> all;
    for (const StepRecord::Arrival& arrival : driven.arrivals())
      all.emplace_back(arrival.prompt_tokens, arrival.max_tokens);
    EXPECT_GT(all.size(), 15u);
    return all;
  };
  const auto once = lengths(3);
  EXPECT_EQ(once, lengths(3));
  EXPECT_NE(once, lengths(4));
}

TEST(LoadGenerator, LengthsAreClippedToTheContextAndThePool) {
  SchedulerLimits limits = kLimits;
  limits.context = 100;
  limits.pool_blocks = 5;
  Driven driven(1, limits);
  driven.load.settings = {
      .prompt_min = 1000, .prompt_max = 2000, .generate_min = 1000, .generate_max = 1000};
  driven.load.burst(3);
  driven.frames(0.1);
  ASSERT_TRUE(driven.settles());
  EXPECT_EQ(driven.load.counts().refused, 0u);
  EXPECT_EQ(driven.load.counts().answered, 3u);
  for (const StepRecord::Arrival& arrival : driven.arrivals()) EXPECT_LE(arrival.max_tokens, 80u);
}

TEST(LoadGenerator, RefusalsAreCountedAndReported) {
  SchedulerLimits limits = kLimits;
  limits.max_queue = 10;
  Driven driven(1, limits);
  driven.load.burst(10);
  driven.frames(0.1);
  driven.load.burst(3);
  driven.frames(0.1);
  EXPECT_EQ(driven.load.counts().sent, 13u);
  EXPECT_EQ(driven.load.counts().refused, 3u);
  EXPECT_THAT(driven.load.refusal(), HasSubstr("the queue takes 10"));
}

TEST(LoadGenerator, CancelAllCancelsEveryRequest) {
  Driven driven;
  driven.load.settings.rate = 100;
  driven.load.start();
  driven.load.burst(20);
  driven.frames(0.5);
  driven.engine()->resume();
  driven.load.cancel_all();
  EXPECT_FALSE(driven.load.started());
  EXPECT_EQ(driven.load.counts().unanswered, 0u);
  EXPECT_TRUE(comes_true([&] {
    bool idle = false;
    driven.engine()->inspect([&](const Scheduler& scheduler) { idle = scheduler.idle(); });
    return idle;
  }));
}

TEST(LoadGenerator, ANewEngineResetsEverything) {
  Driven driven;
  driven.load.settings.rate = 10;
  driven.load.start();
  driven.frames(1);
  EXPECT_GT(driven.load.counts().sent, 0u);
  driven.generation = 2;
  driven.frames(1);
  EXPECT_FALSE(driven.load.started());
  EXPECT_EQ(driven.load.counts().sent, 0u);
  driven.load.start();
  driven.load.update({}, 1000);
  EXPECT_FALSE(driven.load.started()) << "there is no engine";
}

TEST(LoadGenerator, PlaysATraceAtItsSpeed) {
  Driven driven;
  driven.load.play_trace("synthetic:n=20,rate=10,prompt=5,gen=2,seed=7", 10);
  ASSERT_TRUE(driven.reads());
  EXPECT_EQ(driven.load.trace_failure(), "");
  EXPECT_EQ(driven.load.trace_requests(), 20u);
  driven.frames(0.1);
  EXPECT_GT(driven.load.trace_submitted(), 1u);
  EXPECT_LT(driven.load.trace_submitted(), 20u) << "it lasts about 0.2 s in total";
  driven.frames(1);
  EXPECT_EQ(driven.load.trace_submitted(), 20u);
  EXPECT_FALSE(driven.load.playing_trace());
  ASSERT_TRUE(driven.settles());
  EXPECT_EQ(driven.load.counts().answered, 20u);
  EXPECT_EQ(driven.load.counts().tokens, 40u);
}

TEST(LoadGenerator, TraceErrorsAreOneLine) {
  const std::filesystem::path bad =
      std::filesystem::temp_directory_path() / "hearth_load_generator_test.csv";
  std::ofstream(bad) << "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,ten,3\n";
  Driven driven;
  for (const std::string& what :
       {std::string("/nowhere/at/all.csv"), bad.string(), std::string("/dev/zero"),
        std::string("synthetic:rate=fast"), std::filesystem::temp_directory_path().string()}) {
    driven.load.play_trace(what, 1);
    ASSERT_TRUE(driven.reads());
    EXPECT_NE(driven.load.trace_failure(), "") << what;
    EXPECT_EQ(driven.load.trace_failure().find('\n'), std::string::npos);
    EXPECT_FALSE(driven.load.playing_trace());
  }
  driven.load.play_trace(bad.string(), 1);
  ASSERT_TRUE(driven.reads());
  EXPECT_THAT(driven.load.trace_failure(), HasSubstr("ContextTokens"));
  std::filesystem::remove(bad);
  driven.load.play_trace("synthetic:n=3", 1);
  ASSERT_TRUE(driven.reads());
  EXPECT_EQ(driven.load.trace_failure(), "") << "a valid trace after an invalid one";
}

// The snapshot that panels draw from is a little older than what the streams say.
TEST(LoadGenerator, ARequestIsAnsweredWhenNoPanelShowsItAnyMore) {
  Driven driven;
  driven.load.settings.generate_min = driven.load.settings.generate_max = 2;
  driven.load.burst(2);
  driven.frames(0.1);
  std::vector<SequenceView> snapshot;
  driven.engine()->inspect([&](const Scheduler& scheduler) { scheduler.view_sequences(snapshot); });
  ASSERT_EQ(snapshot.size(), 2u);
  snapshot.pop_back();
  driven.shown = snapshot;
  driven.engine()->resume();
  ASSERT_TRUE(comes_true([&] {
    driven.frames(0.02);
    return driven.load.counts().tokens == 4;
  }));
  driven.frames(0.1);
  EXPECT_EQ(driven.load.counts().answered, 1u);
  EXPECT_EQ(driven.load.counts().unanswered, 1u);
  driven.shown = {};
  driven.frames(0.02);
  EXPECT_EQ(driven.load.counts().answered, 2u);
}

// Each request is one search: its beams run as sequences of their own, of which one has a stream.
TEST(LoadGenerator, RequestsWithBeamsAreSearches) {
  Driven driven;
  driven.load.settings.beams = 3;
  driven.load.settings.generate_min = driven.load.settings.generate_max = 6;
  driven.load.burst(2);
  driven.frames(0.1);
  EXPECT_EQ(driven.load.counts().sent, 2u);
  EXPECT_EQ(driven.load.counts().refused, 0u) << driven.load.refusal();
  ASSERT_TRUE(driven.settles());
  EXPECT_EQ(driven.load.counts().answered, 2u);
  EXPECT_EQ(driven.most_members(), 6u);
}

}  // namespace
}  // namespace hearth::testing
