// Decode steps do not allocate on the host, on the engine's side. model/decode_replay_test.cpp
// tests the same on a device.
#include <gtest/gtest.h>

#include "tests/support/count_allocations.h"
#include "tests/support/stand_in_engine.h"

namespace hearth::testing {
namespace {

constexpr uint32_t kSequences = 16;

TEST(DecodeAllocation, CounterCountsOnThisThreadOnly) {
  // Calls of the operators themselves: a compiler may leave out a new-expression and its delete.
  const auto allocate = [] { ::operator delete(::operator new(4)); };
  std::thread(allocate).join();
  EXPECT_EQ(allocations, 0u);
  counting = true;
  allocate();
  counting = false;
  allocate();
  EXPECT_EQ(allocations, 1u);
  allocations = 0;
}

TEST(DecodeAllocation, DecodeStepsDoNotAllocate) {
  StandInOptions stand_in{.limits = {.max_sequences = kSequences,
                                     .max_step_tokens = 256,
                                     .context = 2048,
                                     .pool_blocks = kSequences * 64}};
  StandInExecutor executor(stand_in);
  Engine engine(executor, nullptr,
                {.limits = stand_in.limits, .start_paused = true, .check_integrity = false});
  std::vector<TokenStream> streams;
  for (uint32_t i = 0; i < kSequences; ++i) {
    auto stream = engine.submit({.prompt = made_up_prompt(10 + i, i), .max_tokens = 800});
    ASSERT_TRUE(stream.ok());
    streams.push_back(std::move(*stream));
  }
  const auto run_steps = [&](uint64_t count) {
    const uint64_t last = engine.metrics().steps.value() + count;
    for (uint64_t i = 0; i < count; ++i) engine.step_once();
    ASSERT_TRUE(comes_true([&] { return engine.metrics().steps.value() == last; }));
  };
  run_steps(50);
  engine.inspect([](const Scheduler&) { counting = true; });
  run_steps(300);
  uint64_t counted = 0;
  engine.inspect([&](const Scheduler& scheduler) {
    counting = false;
    counted = allocations;
    EXPECT_EQ(scheduler.counts().running, kSequences) << "not in the middle of decoding";
  });
  EXPECT_EQ(counted, 0u);
  engine.resume();
  for (TokenStream& stream : streams) EXPECT_EQ(read_ids(stream).size(), 800u);
}

}  // namespace
}  // namespace hearth::testing
