// Many threads use all of the engine's functions at once, for a few seconds. Every request ends,
// the counts add up, and ThreadSanitizer, under which this also runs, finds nothing.
#include <atomic>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/stand_in_engine.h"

namespace hearth::testing {
namespace {

using std::chrono::milliseconds;

constexpr SchedulerLimits kStormLimits{.max_sequences = 6,
                                       .max_step_tokens = 48,
                                       .context = 128,
                                       .pool_blocks = 12,
                                       .swap_blocks = 16,
                                       .max_queue = 40};

uint32_t below(std::mt19937& random, uint32_t most) {
  return static_cast<uint32_t>(random() % most);
}

struct Totals {
  std::atomic<uint64_t> submitted{0}, refused{0}, let_go{0};
  std::atomic<uint64_t> length{0}, cancelled{0}, time_limit{0}, tokens{0};
};

class Storm {
 public:
  explicit Storm(StandInEngine& engine) : engine_(engine) {}

  void run(milliseconds duration) {
    std::vector<std::thread> threads;
    const auto start = [&](auto job) {
      threads.emplace_back([this, job, seed = threads.size()] {
        std::mt19937 random(static_cast<uint32_t>(seed));
        while (!over_) (this->*job)(random);
      });
    };
    for (int i = 0; i < 3; ++i) start(&Storm::ask);
    start(&Storm::ask_several);
    start(&Storm::turn_switches);
    start(&Storm::turn_controls);
    start(&Storm::look);
    start(&Storm::drain);
    std::this_thread::sleep_for(duration);
    over_ = true;
    // A reader may be waiting for an engine that another thread has paused.
    engine_->set_pace(0);
    engine_->resume();
    for (std::thread& thread : threads) {
      engine_->resume();
      thread.join();
    }
  }

  Totals totals;

 private:
  void ask(std::mt19937& random) {
    GenerationRequest request = mixed_request(below(random, 500));
    if (below(random, 10) == 0) request.time_limit_seconds = 0.005;
    auto stream = engine_->submit(request);
    if (!stream.ok()) {
      ++totals.refused;
      std::this_thread::sleep_for(milliseconds(1));
      return;
    }
    ++totals.submitted;
    finish(request, std::move(*stream), below(random, 8));
  }

  void ask_several(std::mt19937& random) {
    GenerationRequest request = mixed_request(below(random, 500));
    const uint32_t n = 1 + below(random, 4);
    auto streams = engine_->submit_n(request, n);
    if (!streams.ok()) {
      totals.refused += n;
      std::this_thread::sleep_for(milliseconds(1));
      return;
    }
    totals.submitted += n;
    for (TokenStream& stream : *streams) {
      finish(request, std::move(stream), below(random, 8));
      ++request.sampling.seed;
    }
  }

  // Reads to the end, or reads some tokens and then cancels or releases the stream.
  void finish(const GenerationRequest& request, TokenStream stream, uint32_t what) {
    std::vector<TokenId> ids;
    if (what == 0) {
      ++totals.let_go;
      return;
    }
    if (what == 1) engine_->cancel(stream.request());
    while (const auto token = stream.next()) {
      ids.push_back(token->id);
      if (what == 2 && ids.size() == 4) engine_->cancel(stream.request());
    }
    std::vector<TokenId> right = engine_.alone(request);
    const GenerationEnd& end = stream.end();
    EXPECT_EQ(end.generated_tokens, ids.size());
    if (end.reason != FinishReason::kLength) right.resize(ids.size());
    EXPECT_EQ(ids, right) << finish_reason_name(end.reason) << " " << end.message;
    totals.tokens += ids.size();
    switch (end.reason) {
      case FinishReason::kLength:
        ++totals.length;
        break;
      case FinishReason::kCancelled:
        ++totals.cancelled;
        break;
      case FinishReason::kTimeLimit:
        ++totals.time_limit;
        break;
      default:
        ADD_FAILURE() << finish_reason_name(end.reason) << ": " << end.message;
    }
  }

  void turn_switches(std::mt19937& random) {
    Policy policy;
    for (const PolicySwitch& entry : policy_switches())
      if (!entry.values.empty())
        set_switch(policy, entry.name, entry.values[random() % entry.values.size()]);
    policy.max_chunk_tokens = below(random, 32);
    engine_->set_policy(policy);
    // Every request of this test fits into 7 blocks.
    if (below(random, 4) == 0)
      engine_->set_limits(1 + below(random, 8), 1 + below(random, 60),
                          7 + below(random, kStormLimits.pool_blocks - 7 + 1));
    engine_->set_priority(1 + below(random, 500), static_cast<int32_t>(below(random, 4)));
    static_cast<void>(engine_->policy());
    EXPECT_LE(engine_->limits().max_sequences, kStormLimits.max_sequences);
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }

  void turn_controls(std::mt19937& random) {
    engine_->pause();
    for (uint32_t i = below(random, 5); i > 0; --i) engine_->step_once();
    engine_->set_pace(below(random, 3) == 0 ? 2000.0 : 0.0);
    static_cast<void>(engine_->state());
    engine_->resume();
    std::this_thread::sleep_for(milliseconds(1));
  }

  void look(std::mt19937& random) {
    engine_->inspect([](const Scheduler& scheduler) {
      std::vector<BlockView> blocks;
      std::vector<SequenceView> sequences;
      scheduler.view_blocks(blocks);
      scheduler.view_sequences(sequences);
      EXPECT_EQ(blocks.size(), kStormLimits.pool_blocks);
    });
    const uint64_t written = engine_->records().written();
    StepRecord record;
    for (uint64_t i = 0; i < written && i < 20; ++i)
      if (engine_->records().read(written - 1 - random() % std::min<uint64_t>(written, 300),
                                  record)) {
        EXPECT_LE(record.tokens + record.padding_tokens, kStormLimits.max_step_tokens);
        EXPECT_LE(record.members.size(), kStormLimits.max_sequences);
      }
    static_cast<void>(engine_->metrics().time_between_tokens_seconds.snapshot().quantile(0.9));
    EXPECT_EQ(engine_->failure(), "");
  }

  void drain(std::mt19937&) {
    std::this_thread::sleep_for(milliseconds(150));
    engine_->drain();
    engine_->undrain();
  }

  StandInEngine& engine_;
  std::atomic<bool> over_{false};
};

// Proposals are judged, dropped and drafted again while requests are cancelled, preempted, swapped
// and forked; the storm compares every answer with plain decoding's.
TEST(EngineStorm, AnswersStayTheSameWithSpeculation) {
  for (const SpeculationMethod method :
       {SpeculationMethod::kDraft, SpeculationMethod::kLookahead, SpeculationMethod::kAuto}) {
    StandInOptions options{.limits = kStormLimits, .speculation = {.method = method}};
    options.limits.max_proposed = 60;
    // Not enough for everyone.
    if (method != SpeculationMethod::kLookahead) options.draft_blocks = 20;
    StandInEngine engine(options);
    Storm storm(engine);
    storm.run(milliseconds(1200));
    engine->resume();
    engine->drain();
    EXPECT_GT(storm.totals.length, 10u);
    EXPECT_EQ(engine->metrics().finished_error.value(), 0u);
    if (method == SpeculationMethod::kDraft) {
      EXPECT_GT(engine->metrics().accepted_tokens.value(), 100u);
    }
  }
}

TEST(EngineStorm, EveryRequestEndsAndCountsAddUp) {
  StandInEngine engine({.limits = kStormLimits});
  Storm storm(engine);
  storm.run(milliseconds(4000));
  engine->resume();
  engine->drain();

  const Totals& totals = storm.totals;
  const Metrics& metrics = engine->metrics();
  EXPECT_GT(totals.submitted, 200u);
  EXPECT_GT(totals.length, 50u);
  EXPECT_GT(totals.let_go, 5u);
  EXPECT_EQ(metrics.requests_submitted.value(), totals.submitted);
  EXPECT_EQ(metrics.requests_refused.value(), totals.refused);
  EXPECT_EQ(metrics.finished_error.value(), 0u);
  // Some of the released streams may have ended already.
  EXPECT_EQ(metrics.finished_length.value() + metrics.finished_cancelled.value() +
                metrics.finished_time_limit.value(),
            totals.submitted);
  EXPECT_EQ(totals.length + totals.cancelled + totals.time_limit + totals.let_go, totals.submitted);
  EXPECT_GE(metrics.generated_tokens.value(), totals.tokens);
  EXPECT_GT(metrics.preemptions_recompute.value() + metrics.preemptions_swap.value(), 0u);
  EXPECT_EQ(metrics.running.value() + metrics.waiting.value() + metrics.swapped.value(), 0u);
  engine->inspect([](const Scheduler& scheduler) {
    EXPECT_TRUE(scheduler.idle());
    EXPECT_EQ(scheduler.counts().blocks_used, 0u);
    EXPECT_EQ(scheduler.counts().swap_used, 0u);
  });
}

TEST(EngineStorm, EnginesAreCreatedAndDestroyedUnderLoad) {
  for (uint32_t round = 0; round < 30; ++round) {
    StandInEngine engine({.limits = kStormLimits});
    std::vector<TokenStream> streams;
    for (uint32_t i = 0; i < 12; ++i) {
      auto stream = engine->submit(mixed_request(round * 12 + i));
      ASSERT_TRUE(stream.ok());
      streams.push_back(std::move(*stream));
    }
    std::thread reader([&] {
      for (TokenStream& stream : streams) read_ids(stream);
    });
    if (round % 3 != 0) std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
    engine.close();
    reader.join();
    for (TokenStream& stream : streams) EXPECT_TRUE(stream.ended());
  }
}

}  // namespace
}  // namespace hearth::testing
