// Injected failures: allocations that fail one by one, a device lost in the middle of work, and
// objects released while the GPU still uses them.
#include "runtime/faults.h"

#include <gmock/gmock.h>

#include "engine/ops/norm.h"
#include "runtime/chain_guard.h"
#include "runtime/timeline.h"
#include "runtime/transfer.h"
#include "tests/support/gpu.h"

namespace hearth::testing {
namespace {

using ::testing::HasSubstr;

class FaultsTest : public GpuTest {
 protected:
  // A small job that uses every part of the runtime that allocates.
  static Status job(Device& device) {
    constexpr RmsNormShape kShape{.rows = 3, .width = 64};
    constexpr uint64_t kBytes = kShape.rows * kShape.width * 4;
    HEARTH_ASSIGN(const auto pipelines, PipelineStore::create(device));
    HEARTH_ASSIGN(
        const auto transfer,
        Transfer::create(device, {.ring_bytes = 1024, .chunk_bytes = 512, .direct = false}));
    HEARTH_ASSIGN(const Buffer x, device.memory().allocate({.bytes = kBytes, .name = "x"}));
    HEARTH_ASSIGN(const Buffer weight,
                  device.memory().allocate({.bytes = kShape.width * 4, .name = "weight"}));
    HEARTH_ASSIGN(const Buffer y, device.memory().allocate({.bytes = kBytes, .name = "y"}));
    const std::vector<float> threes(kShape.rows * kShape.width, 3.0f);
    const std::vector<float> twos(kShape.width, 2.0f);
    HEARTH_TRY(transfer->upload(x.all(), std::as_bytes(std::span(threes))));
    HEARTH_TRY(transfer->upload(weight.all(), std::as_bytes(std::span(twos))));
    HEARTH_TRY(transfer->finish());
    HEARTH_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device));
    HEARTH_TRY(
        record_rms_norm(recorder, *pipelines, choose_rms_norm(device.caps(), kShape),
                        {.x = x.all(), .weight = weight.all(), .y = y.all(), .shape = kShape}));
    HEARTH_ASSIGN(const CommandBuffer commands, recorder.finish());
    HEARTH_TRY(device.compute().run(commands));
    std::vector<float> result(threes.size());
    HEARTH_TRY(transfer->download(y.all(), std::as_writable_bytes(std::span(result))));
    for (const float value : result)
      if (!(std::abs(value - 2.0f) < 1e-3f)) return Error{ErrorKind::kInternal, "wrong result"};
    return {};
  }

  // Not counting those that the device itself owns.
  static uint64_t buffers_in_use(const Device& device) {
    uint64_t count = 0;
    for (const IntentUse& use : device.memory().use().by_intent) count += use.buffers;
    return count - device.chain().buffers();
  }
};

TEST_F(FaultsTest, NothingLeaksWhicheverAllocationFails) {
  ASSERT_ASSIGN(const auto device, open_device());
  ASSERT_OK(job(*device));
  int failures = 0;
  for (int n = 1;; ++n) {
    device->faults().allocation.arm(n);
    const Status status = job(*device);
    const bool failed = !device->faults().allocation.pending();
    device->faults().allocation.arm(0);
    EXPECT_EQ(buffers_in_use(*device), 0u) << "after allocation " << n << " failed";
    if (!failed) {
      ASSERT_OK(status);
      break;
    }
    ++failures;
    ASSERT_FALSE(status.ok()) << n;
    EXPECT_EQ(status.error().kind, ErrorKind::kOutOfMemory) << n;
    EXPECT_THAT(status.error().message, HasSubstr("cannot allocate")) << n;
    EXPECT_THAT(status.error().message, HasSubstr("free")) << n;
  }
  EXPECT_EQ(failures, 5) << "two in Transfer, three in job()";
  ASSERT_OK(job(*device));
}

TEST_F(FaultsTest, LosingTheDeviceAtAnySubmissionIsAnError) {
  int failures = 0;
  for (int n = 1;; ++n) {
    ASSERT_ASSIGN(const auto device, open_device());
    device->faults().submission.arm(n);
    const Status status = job(*device);
    if (device->faults().submission.pending()) {
      ASSERT_OK(status);
      break;
    }
    ++failures;
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind, ErrorKind::kDeviceLost);
    EXPECT_THAT(status.error().message, HasSubstr(device->caps().name));
    EXPECT_TRUE(device->lost());
    EXPECT_EQ(buffers_in_use(*device), 0u);

    // From now on every call fails at once.
    EXPECT_EQ(job(*device).error().kind, ErrorKind::kDeviceLost);
    EXPECT_EQ(device->compute().wait_idle().error().kind, ErrorKind::kDeviceLost);
    EXPECT_EQ(device->memory().allocate({.bytes = 4}).error().kind, ErrorKind::kDeviceLost);
  }
  EXPECT_GE(failures, 4);
  ASSERT_ASSIGN(const auto fresh, open_device());
  ASSERT_OK(job(*fresh));
}

struct Tracked {
  explicit Tracked(int& count) : alive(&count) { ++*alive; }
  Tracked(Tracked&& other) noexcept : alive(std::exchange(other.alive, nullptr)) {}
  Tracked(const Tracked&) = delete;
  Tracked& operator=(const Tracked&) = delete;
  Tracked& operator=(Tracked&&) = delete;
  ~Tracked() {
    if (alive != nullptr) --*alive;
  }
  int* alive;
};

TEST_F(FaultsTest, ReleasedObjectsLiveUntilTheGpuHasPassed) {
  ASSERT_ASSIGN(const auto timeline, Timeline::create(device(), "test"));
  int alive = 0;
  timeline->release_after(0, Tracked(alive));
  timeline->release_after(5, Tracked(alive));
  timeline->release_after(0, Tracked(alive));
  EXPECT_EQ(alive, 3);
  timeline->collect();
  EXPECT_EQ(alive, 1) << "0 has been reached, 5 has not";
  EXPECT_EQ(timeline->held_count(), 1u);
}

TEST_F(FaultsTest, ABufferReleasedInFlightIsFreedAfterwards) {
  const uint64_t before = device().memory().use().of(MemoryIntent::kActivations).buffers;
  ASSERT_ASSIGN(Buffer scratch, device().memory().allocate({.bytes = 1 << 20, .name = "scratch"}));
  ASSERT_ASSIGN(CommandRecorder recorder, CommandRecorder::begin(device()));
  recorder.fill(scratch.all(), 1);
  ASSERT_ASSIGN(CommandBuffer commands, recorder.finish());
  ASSERT_ASSIGN(const TimelinePoint point, device().compute().submit(commands));
  device().compute().timeline().release_after(point.value, std::move(scratch));
  device().compute().timeline().release_after(point.value, std::move(commands));
  ASSERT_OK(device().compute().wait(point));
  device().compute().timeline().collect();
  EXPECT_EQ(device().memory().use().of(MemoryIntent::kActivations).buffers, before);
}

TEST_F(FaultsTest, AWaitBeyondItsLimitLosesTheDevice) {
  ASSERT_ASSIGN(const auto own, open_device());
  ASSERT_ASSIGN(const auto timeline, Timeline::create(*own, "never"));
  const Status status = timeline->wait(1, std::chrono::milliseconds(20));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kDeviceLost);
  EXPECT_THAT(status.error().message, HasSubstr("did not finish within 0.02 s"));
  EXPECT_THAT(status.error().message, HasSubstr(own->caps().name));
  EXPECT_TRUE(own->lost());
  EXPECT_EQ(job(*own).error().kind, ErrorKind::kDeviceLost);
}

// It once was an hour for all of them.
TEST(GpuPatience, IsSecondsForGpusAndMinutesForCpus) {
  EXPECT_EQ(gpu_patience(DeviceType::kDiscrete), std::chrono::seconds(10));
  EXPECT_EQ(gpu_patience(DeviceType::kIntegrated), std::chrono::minutes(1));
  EXPECT_EQ(gpu_patience(DeviceType::kCpu), std::chrono::minutes(10));
}

}  // namespace
}  // namespace hearth::testing
