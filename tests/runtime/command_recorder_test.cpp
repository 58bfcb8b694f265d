#include "runtime/command_recorder.h"

#include <cmath>
#include <cstring>

#include "engine/ops/embed.h"
#include "engine/ops/norm.h"
#include "params/rms_norm.h"
#include "runtime/gpu_timer.h"
#include "tests/support/gpu.h"

namespace hearth::testing {
namespace {

class CommandRecorderTest : public GpuTest {
 protected:
  // The norm of a constant row is the weight, so that a chain of norms is easy to check.
  Status norm(CommandRecorder& recorder, const Buffer& x, const Buffer& weight, const Buffer& y) {
    const RmsNormShape shape{.rows = 1, .width = static_cast<uint32_t>(x.bytes() / 4)};
    return record_rms_norm(recorder, pipelines(), choose_rms_norm(device().caps(), shape),
                           {.x = x.all(), .weight = weight.all(), .y = y.all(), .shape = shape});
  }

  // y = x, by a kernel that cannot be chained: an embedding lookup of the only row.
  Status unchained_copy(CommandRecorder& recorder, const Buffer& x, const Buffer& y) {
    const EmbedShape shape{.format = WeightFormat::kF32,
                           .rows = 1,
                           .width = static_cast<uint32_t>(x.bytes() / 4),
                           .vocabulary = 1};
    return record_embed(recorder, pipelines(), choose_embed(device().caps(), shape),
                        {.ids = ids_.all(),
                         .sampled = ids_.all(),
                         .weight = x.all(),
                         .y = y.all(),
                         .shape = shape});
  }

  void SetUp() override {
    GpuTest::SetUp();
    ids_ = filled(std::vector<uint32_t>(4, 0));
  }
  void TearDown() override {
    ids_ = {};
    GpuTest::TearDown();
  }

 private:
  Buffer ids_;
};

TEST_F(CommandRecorderTest, DependentCommandsGetBarriersOthersDoNot) {
  const Buffer a = filled(std::vector<float>(64, 3.0f));
  const Buffer two = filled(std::vector<float>(64, 2.0f));
  const Buffer b = poisoned(256), c = poisoned(256), d = poisoned(256);
  ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device()));
  ASSERT_OK(norm(recorder, a, two, b));
  ASSERT_OK(norm(recorder, a, two, c));  // independent of the first
  ASSERT_OK(norm(recorder, b, two, d));  // after the first
  ASSERT_ASSIGN(const CommandBuffer commands, recorder.finish());
  EXPECT_EQ(commands.dispatches(), 3u);
  EXPECT_EQ(commands.barriers(), 1u);
  ASSERT_OK(device().compute().run(commands));
  for (const float value : read<float>(d)) EXPECT_NEAR(value, 2.0f, 1e-4f);
}

TEST_F(CommandRecorderTest, ABarrierForKernelsDoesNotCoverACopy) {
  const Buffer a = filled(std::vector<float>(64, 3.0f));
  const Buffer two = filled(std::vector<float>(64, 2.0f));
  const Buffer b = poisoned(256), c = poisoned(256), d = poisoned(256);
  ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device()));
  ASSERT_OK(norm(recorder, a, two, b));
  ASSERT_OK(norm(recorder, b, two, c));  // a barrier between kernels covers b for kernels
  recorder.copy(b.all(), d.all());       // so the copy needs its own
  ASSERT_OK(norm(recorder, a, two, b));
  ASSERT_ASSIGN(const CommandBuffer commands, recorder.finish());
  EXPECT_EQ(commands.barriers(), 3u);
  ASSERT_OK(device().compute().run(commands));
  for (const float value : read<float>(d)) EXPECT_NEAR(value, 2.0f, 1e-4f);
}

TEST_F(CommandRecorderTest, SerialPutsABarrierBeforeEveryCommand) {
  const Buffer a = filled(std::vector<float>(64, 3.0f));
  const Buffer b = poisoned(256), c = poisoned(256);
  ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device(), {.serial = true}));
  ASSERT_OK(norm(recorder, a, a, b));
  ASSERT_OK(norm(recorder, a, a, c));
  ASSERT_ASSIGN(const CommandBuffer commands, recorder.finish());
  EXPECT_EQ(commands.barriers(), 1u);
  ASSERT_OK(device().compute().run(commands));
}

// Runs on devices with chains, and with ctest's *.chained on any device.
TEST_F(CommandRecorderTest, ChainedKernelsWaitForEachOtherWithoutBarriers) {
  if (!device().caps().features.ordered_groups) GTEST_SKIP() << "no chains on this device";
  const Buffer two = filled(std::vector<float>(64, 2.0f));
  const Buffer three = filled(std::vector<float>(64, 3.0f));
  const Buffer a = filled(std::vector<float>(64, 7.0f));
  const Buffer b = poisoned(256), c = poisoned(256), d = poisoned(256), e = poisoned(256);
  ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device(), {.chained = true}));
  ASSERT_OK(norm(recorder, a, two, b));    // before the first barrier there is no chain
  ASSERT_OK(norm(recorder, b, two, c));    // barrier
  ASSERT_OK(norm(recorder, b, three, d));  // in the same link
  ASSERT_OK(norm(recorder, c, three, b));  // waits for both: d's kernel reads what it writes
  ASSERT_OK(norm(recorder, b, two, e));    // waits
  recorder.copy(e.all(), a.all());         // barrier
  ASSERT_OK(norm(recorder, d, three, e));  // barrier: the copy reads it
  ASSERT_ASSIGN(const CommandBuffer commands, recorder.finish());
  EXPECT_EQ(commands.dispatches(), 7u);
  EXPECT_EQ(commands.barriers(), 3u);
  TimelinePoint last;
  for (int i = 0; i < 20; ++i) {
    ASSERT_ASSIGN(last, device().compute().submit(commands));
  }
  ASSERT_OK(device().compute().wait(last));
  for (const float value : read<float>(a)) EXPECT_NEAR(value, 2.0f, 1e-4f);
  for (const float value : read<float>(b)) EXPECT_NEAR(value, 3.0f, 1e-4f);
  for (const float value : read<float>(e)) EXPECT_NEAR(value, 3.0f, 1e-4f);
}

TEST_F(CommandRecorderTest, UnchainedKernelsGetBarriers) {
  if (!device().caps().features.ordered_groups) GTEST_SKIP() << "no chains on this device";
  const Buffer two = filled(std::vector<float>(64, 2.0f));
  const Buffer a = filled(std::vector<float>(64, 7.0f));
  const Buffer b = poisoned(256), c = poisoned(256);
  ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device(), {.chained = true}));
  ASSERT_OK(norm(recorder, a, two, b));
  ASSERT_OK(norm(recorder, b, two, c));  // barrier: chains start after the first one
  ASSERT_OK(norm(recorder, c, two, b));  // waits
  ASSERT_OK(unchained_copy(recorder, b, c));
  ASSERT_OK(norm(recorder, c, two, b));  // barrier, like the copy before it
  ASSERT_ASSIGN(const CommandBuffer commands, recorder.finish());
  EXPECT_EQ(commands.barriers(), 3u);
  ASSERT_OK(device().compute().run(commands));
  for (const float value : read<float>(b)) EXPECT_NEAR(value, 2.0f, 1e-4f);
}

// It reads what was written two links earlier, and conflicts with nothing in the current link.
TEST_F(CommandRecorderTest, UnchainedKernelsWaitForEveryLink) {
  if (!device().caps().features.ordered_groups) GTEST_SKIP() << "no chains on this device";
  const Buffer two = filled(std::vector<float>(64, 2.0f));
  const Buffer a = filled(std::vector<float>(64, 7.0f));
  const Buffer b = poisoned(256), c = poisoned(256), d = poisoned(256), e = poisoned(256);
  ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device(), {.chained = true}));
  ASSERT_OK(norm(recorder, a, two, b));
  ASSERT_OK(norm(recorder, b, two, c));  // barrier: chains start after the first one
  ASSERT_OK(norm(recorder, c, two, d));  // waits
  ASSERT_OK(unchained_copy(recorder, c, e));
  ASSERT_ASSIGN(const CommandBuffer commands, recorder.finish());
  EXPECT_EQ(commands.barriers(), 2u);
}

// A wait in vain after it would make the recording run again, and the kernel twice.
TEST_F(CommandRecorderTest, NothingIsChainedAfterALastingKernel) {
  if (!device().caps().features.ordered_groups) GTEST_SKIP() << "no chains on this device";
  const Buffer two = filled(std::vector<float>(64, 2.0f));
  const Buffer a = filled(std::vector<float>(64, 7.0f));
  const Buffer b = poisoned(256), c = poisoned(256), d = poisoned(256);
  const KernelPlan plan = choose_rms_norm(device().caps(), {1, 64});
  ASSERT_ASSIGN(const Pipeline* pipeline, pipelines().get(plan.pipeline));
  for (const bool lasting : {false, true}) {
    ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device(), {.chained = true}));
    const auto norm_into = [&](const Buffer& x, const Buffer& y, bool lasts) {
      recorder.dispatch({.pipeline = *pipeline,
                         .arguments = params::RmsNorm{.x = reads(x.all()),
                                                      .weight = two.all(),
                                                      .y = y.all(),
                                                      .width = 64,
                                                      .epsilon = 1e-6f},
                         .groups = plan.groups,
                         .lasting = lasts});
    };
    norm_into(a, b, false);
    norm_into(b, c, false);    // barrier: chains start after the first one
    norm_into(c, b, false);    // waits
    norm_into(b, d, lasting);  // barrier, if it lasts
    norm_into(d, c, false);    // and so has everything after it
    norm_into(c, b, false);
    ASSERT_ASSIGN(const CommandBuffer commands, recorder.finish());
    EXPECT_EQ(commands.barriers(), lasting ? 4u : 1u);
    ASSERT_OK(device().compute().run(commands));
    for (const float value : read<float>(b)) EXPECT_NEAR(value, 2.0f, 1e-4f);
  }
}

TEST_F(CommandRecorderTest, OneRecordingCanRunManyTimesEvenInFlight) {
  const Buffer x = filled(std::vector<float>(64, 3.0f));
  const Buffer two = filled(std::vector<float>(64, 2.0f));
  const Buffer y = poisoned(256);
  ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device()));
  ASSERT_OK(norm(recorder, x, two, y));
  recorder.copy(y.all(), x.all());
  ASSERT_ASSIGN(const CommandBuffer commands, recorder.finish());
  TimelinePoint last;
  for (int i = 0; i < 20; ++i) {
    ASSERT_ASSIGN(last, device().compute().submit(commands));
  }
  ASSERT_OK(device().compute().wait(last));
  for (const float value : read<float>(x)) EXPECT_NEAR(value, 2.0f, 1e-4f);

  // Data may change between runs of the same recording.
  for (float& value : x.view<float>()) value = -5.0f;
  ASSERT_OK(x.flush());
  ASSERT_OK(device().compute().run(commands));
  for (const float value : read<float>(x)) EXPECT_NEAR(value, -2.0f, 1e-4f);
}

TEST_F(CommandRecorderTest, FillsAndCopiesSlices) {
  const Buffer a = poisoned(64), b = poisoned(64);
  run([&](CommandRecorder& recorder) -> Status {
    recorder.fill(a.slice(16, 32), 7);
    recorder.copy(a.slice(16, 16), b.slice(0, 16));
    return {};
  });
  EXPECT_EQ(read<uint32_t>(a)[3], 0xffffffffu);
  EXPECT_EQ(read<uint32_t>(a)[4], 7u);
  EXPECT_EQ(read<uint32_t>(a)[11], 7u);
  EXPECT_EQ(read<uint32_t>(a)[12], 0xffffffffu);
  EXPECT_EQ(read<uint32_t>(b)[3], 7u);
  EXPECT_EQ(read<uint32_t>(b)[4], 0xffffffffu);
}

TEST_F(CommandRecorderTest, ARecordingWithASliceOutsideItsBufferIsNotFinished) {
  const Buffer a = poisoned(64);
  ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device()));
  recorder.fill(a.slice(16, 32), 7);
  recorder.fill({&a, 48, 32}, 7);
  const auto commands = recorder.finish();
  ASSERT_FALSE(commands.ok());
  EXPECT_EQ(commands.error().message, "'fill' was given 32 bytes at offset 48 of a buffer of 64");
}

TEST_F(CommandRecorderTest, TimesEachCommandOrTheWholeBuffer) {
  const Buffer x = filled(std::vector<float>(1 << 16, 3.0f)), y = poisoned(1 << 18);
  ASSERT_ASSIGN(const auto timer, GpuTimer::create(device(), 8));
  for (const Timing timing : {Timing::kEachCommand, Timing::kWhole}) {
    ASSERT_ASSIGN(
        CommandRecorder recorder,
        CommandRecorder::begin(device(), {.name = "all", .timer = timer.get(), .timing = timing}));
    ASSERT_OK(norm(recorder, x, x, y));
    recorder.copy(y.all(), x.all());
    ASSERT_ASSIGN(const CommandBuffer commands, recorder.finish());
    for (int i = 0; i < 2; ++i) {
      ASSERT_OK(device().compute().run(commands));
      ASSERT_ASSIGN(const std::vector<GpuSpan> spans, timer->read());
      ASSERT_EQ(spans.size(), timing == Timing::kWhole ? 1u : 2u);
      EXPECT_EQ(spans[0].label, timing == Timing::kWhole ? "all" : "rms_norm");
      EXPECT_EQ(spans[0].start_seconds, 0.0);
      for (const GpuSpan& span : spans) {
        EXPECT_GT(span.seconds, 0.0);
        EXPECT_LT(span.seconds, 10.0);
      }
    }
  }
}

TEST_F(CommandRecorderTest, CommandsBeyondTheTimersCapacityStillRun) {
  const Buffer x = filled(std::vector<float>(64, 3.0f)), y = poisoned(256);
  ASSERT_ASSIGN(const auto timer, GpuTimer::create(device(), 1));
  ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device(), {.timer = timer.get()}));
  ASSERT_OK(norm(recorder, x, x, y));
  recorder.copy(y.all(), x.all());
  ASSERT_ASSIGN(const CommandBuffer commands, recorder.finish());
  ASSERT_OK(device().compute().run(commands));
  ASSERT_ASSIGN(const std::vector<GpuSpan> spans, timer->read());
  EXPECT_EQ(spans.size(), 1u);
}

// The other tests rely on the validation layers, so this one checks that they are active.
TEST_F(CommandRecorderTest, ValidationReportsAMistake) {
  if (instance().validation() == Validation::kOff) GTEST_SKIP() << "validation is off";
  const Buffer buffer = poisoned(64);
  ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device()));
  recorder.fill(buffer.slice(2, 8), 7);  // words begin at multiples of four
  ASSERT_ASSIGN(const CommandBuffer commands, recorder.finish());
  EXPECT_FALSE(instance().take_validation_messages().empty());
}

}  // namespace
}  // namespace hearth::testing
