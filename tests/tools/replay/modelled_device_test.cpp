// What steps cost on the modelled device, and the clock that simulations run on.
#include "tools/replay/modelled_device.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/replay/modelled_executor.h"
#include "tools/replay/virtual_clock.h"

namespace hearth::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

EngineClock::time_point at(milliseconds time) { return EngineClock::time_point(time); }

// `sequences` that decode one token each after `context` others.
StepBatch decode_batch(uint32_t sequences, uint32_t context) {
  StepBatch batch;
  for (uint32_t i = 0; i < sequences; ++i) {
    batch.add_sequence(context, std::vector<uint32_t>{7}, std::vector<uint32_t>());
    batch.logit_rows.push_back(i);
    batch.sampling.push_back({});
  }
  return batch;
}

StepBatch prompt_batch(uint32_t tokens, uint32_t context = 0) {
  StepBatch batch;
  batch.add_sequence(context, std::vector<uint32_t>(tokens, 7), std::vector<uint32_t>());
  batch.logit_rows.push_back(tokens - 1);
  batch.sampling.push_back({});
  return batch;
}

double cost(const StepBatch& batch) { return step_seconds(ModelledDevice{}, step_work(batch)); }

TEST(ModelledDevice, HasTheSizeItSaysAndFitsTheCard) {
  const ModelledDevice device;
  EXPECT_NEAR(device.layer_weights() + device.output_weights(), 1.24e9, 0.01e9);
  EXPECT_EQ(device.kv_bytes_per_token(), 32768);
  const SchedulerLimits limits = scheduler_limits(device, {});
  const double bytes = device.weight_bytes() + limits.pool_blocks * device.kv_bytes_per_block();
  EXPECT_LT(bytes, static_cast<double>(device.memory_bytes));
  EXPECT_GE(limits.pool_blocks * kTokensPerBlock, limits.context);
}

TEST(ModelledDevice, LimitsAreWhatTheUserAskedFor) {
  const ModelledDevice device;
  const SchedulerLimits limits =
      scheduler_limits(device, {.max_sequences = 3,
                                .max_step_tokens = 2,
                                .context = 100,
                                .kv_blocks = 9,
                                .swap_bytes = 5 * uint64_t(device.kv_bytes_per_block())});
  EXPECT_EQ(limits.max_sequences, 3u);
  EXPECT_EQ(limits.max_step_tokens, 2u);
  EXPECT_EQ(limits.context, 100u);
  EXPECT_EQ(limits.pool_blocks, 9u);
  EXPECT_EQ(limits.swap_blocks, 5u);
  EXPECT_GE(scheduler_limits(device, {.max_sequences = 1000}).max_step_tokens, 1000u);
}

TEST(ModelledDevice, DecodingSixteenCostsLittleMoreThanDecodingOne) {
  const double one = cost(decode_batch(1, 100)), sixteen = cost(decode_batch(16, 100));
  EXPECT_GT(sixteen, one);
  EXPECT_LT(sixteen, one * 1.1);
  EXPECT_GT(cost(decode_batch(256, 100)), 4 * one);  // arithmetic is the limit by then
}

TEST(ModelledDevice, PromptsCostByTheToken) {
  EXPECT_NEAR(cost(prompt_batch(2048)) / cost(prompt_batch(1024)), 2, 0.2);
  // A chunk costs more the more comes before it: attention.
  EXPECT_GT(cost(prompt_batch(256, 4096)), cost(prompt_batch(256)) * 1.05);
}

TEST(ModelledDevice, ALongerContextIsReadAtEveryDecode) {
  EXPECT_GT(cost(decode_batch(16, 2000)), cost(decode_batch(16, 100)) * 1.5);
}

TEST(ModelledDevice, PaddingIsComputedLikeAnyOtherRow) {
  StepBatch padded = prompt_batch(64);
  padded.padding_rows = 448;
  EXPECT_NEAR(cost(padded), cost(prompt_batch(512)), 0.05 * cost(padded));
  // Padding in a decode step sees the keys of the longest member.
  StepBatch rectangle = decode_batch(1, 2000);
  for (int i = 0; i < 15; ++i) {
    rectangle.logit_rows.push_back(rectangle.rows());
    rectangle.sampling.push_back({});
    rectangle.add_padding(rectangle.sequences.front());
  }
  EXPECT_NEAR(cost(rectangle), cost(decode_batch(16, 2000)), 1e-5);
}

TEST(ModelledDevice, SwappingIsSlowerThanCopyingAndGoesByTheBlock) {
  const ModelledDevice device;
  EXPECT_GT(swap_seconds(device, 100), copy_seconds(device, 100));
  EXPECT_NEAR(swap_seconds(device, 1000), 1000 * device.kv_bytes_per_block() / 12e9, 1e-4);
}

TEST(ModelledExecutor, StepsFollowEachOtherAndMovesComeBetween) {
  VirtualClock clock;
  const ModelledDevice device;
  ModelledExecutor executor(device, clock);
  const StepBatch batch = decode_batch(2, 10);
  const auto seconds = [&] {
    return std::chrono::duration<double>(clock.now().time_since_epoch()).count();
  };
  const StepTicket first = *executor.submit(batch), second = *executor.submit(batch);
  EXPECT_EQ(executor.wait(first)->sampled.size(), 2u);
  EXPECT_NEAR(seconds(), cost(batch), 1e-8);
  ASSERT_TRUE(executor.wait(second).ok());
  EXPECT_NEAR(seconds(), 2 * cost(batch), 1e-8);
  const std::vector<BlockMove> moves(10);
  ASSERT_TRUE(executor.swap_out(moves).ok());
  ASSERT_TRUE(executor.swap_in(moves).ok());
  ASSERT_TRUE(executor.fork_blocks(moves).ok());
  const StepTicket third = *executor.submit(batch);
  ASSERT_TRUE(executor.wait(third).ok());
  EXPECT_NEAR(seconds(), 3 * cost(batch) + 2 * swap_seconds(device, 10) + copy_seconds(device, 10),
              1e-8);
}

TEST(VirtualClock, StopsAtEveryEventOnTheWay) {
  VirtualClock clock;
  std::vector<std::string> log;
  const auto note = [&](const char* name) {
    return [&log, &clock, name] {
      const auto now = std::chrono::duration_cast<milliseconds>(clock.now().time_since_epoch());
      log.push_back(name + std::to_string(now.count()));
    };
  };
  clock.before_sleep(note("sleep "));
  clock.at(at(milliseconds(5)), note("a "));
  clock.at(at(milliseconds(5)), note("b "));
  clock.at(at(milliseconds(20)), note("c "));
  clock.sleep_until(at(milliseconds(10)));
  EXPECT_THAT(log, ElementsAre("sleep 0", "a 5", "b 5"));
  EXPECT_EQ(clock.now(), at(milliseconds(10)));
  clock.sleep_until(at(milliseconds(7)));
  EXPECT_EQ(clock.now(), at(milliseconds(10))) << "a clock never goes back";
  EXPECT_TRUE(clock.run_next());
  EXPECT_EQ(log.back(), "c 20");
  EXPECT_EQ(clock.now(), at(milliseconds(20)));
  EXPECT_FALSE(clock.run_next());
}

}  // namespace
}  // namespace hearth::testing
