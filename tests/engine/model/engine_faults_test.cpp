// Injected faults with a model on a device: every allocation fails once, while opening and while
// running, and the device is lost.
#include <gmock/gmock.h>

#include "engine/sampling/sampler.h"
#include "runtime/chain_guard.h"
#include "runtime/faults.h"
#include "tests/support/gpu.h"
#include "tests/support/tiny_model.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

constexpr StepRunnerOptions kOptions{
    .limits = {.rows = 64, .sequences = 4, .logit_rows = 4, .context = 128, .deterministic = true},
    .slots = 4,
    .kv_blocks = 8,
    .swap_blocks = 8};

class EngineFaultsTest : public GpuTest {
 protected:
  // In addition to the buffers the device has from the start.
  static uint64_t buffers_in_use(const Device& device) {
    uint64_t count = 0;
    for (const IntentUse& use : device.memory().use().by_intent) count += use.buffers;
    return count - device.chain().buffers();
  }

  // With penalties, because setting a slot's history allocates.
  static GenerationRequest request(const TinyModel& tiny, uint32_t number) {
    GenerationRequest request{.prompt = tiny.prompt(10 + 9 * number, number), .max_tokens = 12};
    request.sampling.presence_penalty = 0.3f;
    request.sampling.seed = number;
    return request;
  }

  struct Run {
    std::vector<std::vector<TokenId>> ids;
    std::vector<GenerationEnd> ends;
    uint32_t errors() const {
      uint32_t count = 0;
      for (const GenerationEnd& end : ends) count += end.reason == FinishReason::kError ? 1 : 0;
      return count;
    }
  };
  // Five requests in a pool of 8 blocks; four can run at a time.
  static Run run(Engine& engine, const TinyModel& tiny) {
    std::vector<TokenStream> streams;
    for (uint32_t i = 0; i < 5; ++i) {
      auto stream = engine.submit(request(tiny, i));
      EXPECT_TRUE(stream.ok());
      streams.push_back(std::move(*stream));
    }
    engine.resume();
    Run run;
    for (TokenStream& stream : streams) {
      run.ids.emplace_back();
      while (const auto token = stream.next()) run.ids.back().push_back(token->id);
      run.ends.push_back(stream.end());
    }
    return run;
  }
};

TEST_F(EngineFaultsTest, EveryAllocationMayFailWhileOpening) {
  ASSERT_ASSIGN(const auto own, open_device());
  ASSERT_ASSIGN(const auto store, PipelineStore::create(*own));
  int failures = 0;
  for (int n = 1;; ++n) {
    own->faults().allocation.arm(n);
    {
      const Result<TinyModel> tiny = TinyModel::open(*own, *store, kOptions);
      const bool struck = !own->faults().allocation.pending();
      own->faults().allocation.arm(0);
      if (!struck) {
        ASSERT_OK(tiny);
        EXPECT_EQ(run(*tiny->engine(), *tiny).errors(), 0u) << "and then it works";
        break;
      }
      ++failures;
      ASSERT_FALSE(tiny.ok()) << n;
      EXPECT_EQ(tiny.error().kind, ErrorKind::kOutOfMemory) << n;
      EXPECT_THAT(tiny.error().message, HasSubstr("cannot allocate")) << n;
    }
    EXPECT_EQ(buffers_in_use(*own), 0u) << "after allocation " << n << " failed";
  }
  EXPECT_GT(failures, 40);
}

TEST_F(EngineFaultsTest, EveryAllocationMayFailWhileRunning) {
  ASSERT_ASSIGN(const auto own, open_device());
  ASSERT_ASSIGN(const auto store, PipelineStore::create(*own));
  ASSERT_ASSIGN(const TinyModel tiny, TinyModel::open(*own, *store, kOptions));
  const uint64_t buffers = buffers_in_use(*own);
  Run right;
  for (int n = 0;; ++n) {
    SCOPED_TRACE(n);
    {
      const auto engine = tiny.engine({.preemption = Preemption::kSwap}, 0, /*start_paused=*/true);
      own->faults().allocation.arm(n);
      const Run failed = run(*engine, tiny);
      const bool struck = n > 0 && !own->faults().allocation.pending();
      own->faults().allocation.arm(0);
      EXPECT_EQ(failed.errors() > 0, struck);
      if (n == 0)
        right = failed;
      else if (!struck)
        break;
      for (size_t i = 0; i < failed.ids.size(); ++i) {
        std::vector<TokenId> ids = right.ids[i];
        if (failed.ends[i].reason == FinishReason::kError) {
          EXPECT_THAT(failed.ends[i].message, HasSubstr("cannot allocate"));
          ids.resize(failed.ids[i].size());
        }
        EXPECT_EQ(failed.ids[i], ids) << "request " << i;
      }
      // The other requests are not affected, and the same requests now succeed.
      EXPECT_EQ(engine->state(), EngineState::kRunning);
      EXPECT_EQ(run(*engine, tiny).ids, right.ids);
    }
    ASSERT_OK(own->compute().wait_idle());
    own->compute().timeline().collect();
    EXPECT_EQ(buffers_in_use(*own), buffers);
    ASSERT_LT(n, 40) << "does it allocate at every step?";
  }
}

TEST_F(EngineFaultsTest, AFailedStepKeepsTheResultsOfThePreviousOne) {
  ASSERT_ASSIGN(const TinyModel tiny, TinyModel::open(device(), pipelines(), kOptions));
  const auto step = [&](uint32_t seed, uint32_t tokens) {
    StepBatch batch;
    batch.add_sequence(0, tiny.prompt(tokens, seed), std::vector<BlockId>{seed, seed + 4});
    batch.logit_rows = {tokens - 1};
    // Sampled, because greedy answers of a tiny model are often the same.
    SamplingOptions options{.seed = seed};
    batch.sampling = {make_sampling_row(options, {.id_index = seed}).value()};
    return batch;
  };
  const auto alone = [&](const StepBatch& batch) -> uint32_t {
    const auto ticket = tiny.runner->submit(batch);
    EXPECT_TRUE(ticket.ok());
    return tiny.runner->wait(*ticket)->sampled[0].id;
  };
  const StepBatch first = step(1, 9), second = step(2, 12);
  const uint32_t first_id = alone(first), second_id = alone(second);
  ASSERT_NE(first_id, second_id);
  StepBatch unfit = step(3, 5);
  unfit.block_tables.resize(1 << 20);

  ASSERT_ASSIGN(const StepTicket under_way, tiny.runner->submit(first));
  EXPECT_FALSE(tiny.runner->submit(unfit).ok());
  ASSERT_ASSIGN(const StepTicket next, tiny.runner->submit(second));
  ASSERT_OK(device().compute().wait_idle());
  EXPECT_EQ(tiny.runner->wait(under_way)->sampled[0].id, first_id);
  EXPECT_EQ(tiny.runner->wait(next)->sampled[0].id, second_id);
}

TEST_F(EngineFaultsTest, ALostDeviceEndsEveryRequestButNotTheProcess) {
  for (const int n : {1, 2, 7, 20}) {
    SCOPED_TRACE(n);
    ASSERT_ASSIGN(const auto own, open_device());
    ASSERT_ASSIGN(const auto store, PipelineStore::create(*own));
    ASSERT_ASSIGN(const TinyModel tiny, TinyModel::open(*own, *store, kOptions));
    const auto engine = tiny.engine({}, 0, /*start_paused=*/true);
    own->faults().submission.arm(n);
    const Run lost = run(*engine, tiny);
    EXPECT_GT(lost.errors(), 0u);
    for (const GenerationEnd& end : lost.ends)
      EXPECT_THAT(end.message, HasSubstr(end.reason == FinishReason::kError ? "lost" : ""));
    EXPECT_EQ(engine->state(), EngineState::kFailed);
    const auto refused = engine->submit(request(tiny, 1));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::kDeviceLost);
  }
  // Another device still works.
  ASSERT_ASSIGN(const TinyModel tiny, TinyModel::open(device(), pipelines(), kOptions));
  EXPECT_EQ(run(*tiny.engine(), tiny).errors(), 0u);
}

}  // namespace
}  // namespace hearth::testing
