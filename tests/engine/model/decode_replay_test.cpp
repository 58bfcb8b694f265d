// On a device, decode steps record nothing and do not allocate on the host. Runs without validation
// layers, which allocate on the calling thread.
#include <cstdlib>
#include <thread>

#include "tests/support/count_allocations.h"
#include "tests/support/gpu.h"
#include "tests/support/tiny_model.h"

namespace hearth::testing {
namespace {

constexpr uint32_t kSequences = 16;

// Before the device is opened.
[[maybe_unused]] const int without_validation = setenv("HEARTH_TEST_VALIDATION", "off", 1);

using DecodeReplayTest = GpuTest;

TEST_F(DecodeReplayTest, DecodeStepsNeitherRecordNorAllocate) {
  ASSERT_ASSIGN(const TinyModel tiny,
                TinyModel::open(device(), pipelines(),
                                {.limits = {.rows = 256, .sequences = kSequences, .context = 512},
                                 .slots = kSequences,
                                 .kv_blocks = kSequences * 32}));
  const auto engine = tiny.engine({}, 0, /*start_paused=*/true, /*check_integrity=*/false);
  std::vector<TokenStream> streams;
  for (uint32_t i = 0; i < kSequences; ++i) {
    ASSERT_ASSIGN(auto stream,
                  engine->submit({.prompt = tiny.prompt(5 + i, i), .max_tokens = 400}));
    streams.push_back(std::move(stream));
  }
  const auto run_steps = [&](uint64_t count) {
    const uint64_t last = engine->metrics().steps.value() + count;
    for (uint64_t i = 0; i < count; ++i) engine->step_once();
    for (int i = 0; i < 60000 && engine->metrics().steps.value() < last; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(engine->metrics().steps.value(), last);
  };
  run_steps(4);
  size_t recorded = 0;
  engine->inspect([&](const Scheduler&) {
    recorded = tiny.runner->recorded_steps();
    counting = true;
  });
  // From one block per sequence to six.
  run_steps(80);
  uint64_t counted = 0;
  engine->inspect([&](const Scheduler& scheduler) {
    counting = false;
    counted = allocations;
    EXPECT_EQ(scheduler.counts().running, kSequences);
    EXPECT_GT(scheduler.counts().blocks_used, 5 * kSequences);
    EXPECT_EQ(tiny.runner->recorded_steps(), recorded);
  });
  EXPECT_EQ(counted, 0u);
  EXPECT_EQ(recorded, 2u) << "one for the prompts, one for decoding";
}

}  // namespace
}  // namespace hearth::testing
