#include "engine/model/meeting_time.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "runtime/command_recorder.h"
#include "runtime/device.h"
#include "runtime/memory.h"
#include "runtime/queue.h"

namespace hearth {
namespace {

constexpr uint64_t kFewBytes = 256, kManyBytes = 4 << 20;
constexpr int kRepetitions = 9;

// The median.
Result<double> run_seconds(Device& device, const CommandBuffer& commands) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  for (int i = 0; i < kRepetitions; ++i) {
    const Clock::time_point begin = Clock::now();
    HEARTH_ASSIGN(const TimelinePoint done, device.compute().submit(commands));
    HEARTH_TRY(done.timeline->wait_promptly(done.value));
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::ranges::nth_element(seconds, seconds.begin() + kRepetitions / 2);
  return seconds[kRepetitions / 2];
}

}  // namespace

Result<MeetingTime> time_meeting(Device& device) {
  const auto allocate = [&](MemoryIntent intent) {
    return device.memory().allocate(
        {.bytes = kManyBytes, .intent = intent, .name = "timing of meetings"});
  };
  HEARTH_ASSIGN(const Buffer rows, allocate(MemoryIntent::kActivations));
  HEARTH_ASSIGN(const Buffer leaving, allocate(MemoryIntent::kReadback));
  HEARTH_ASSIGN(const Buffer entering, allocate(MemoryIntent::kUpload));
  const auto copies = [&](uint64_t bytes) -> Result<CommandBuffer> {
    HEARTH_ASSIGN(CommandRecorder recorder,
                  CommandRecorder::begin(device, {.name = "timing of meetings"}));
    recorder.copy(rows.slice(0, bytes), leaving.slice(0, bytes));
    recorder.copy(entering.slice(0, bytes), rows.slice(0, bytes));
    return recorder.finish();
  };
  HEARTH_ASSIGN(const CommandBuffer few, copies(kFewBytes));
  HEARTH_ASSIGN(const CommandBuffer many, copies(kManyBytes));
  HEARTH_ASSIGN(const double few_seconds, run_seconds(device, few));
  HEARTH_ASSIGN(const double many_seconds, run_seconds(device, many));
  return MeetingTime{
      .submit_seconds = few_seconds,
      .byte_seconds = std::max(0.0, many_seconds - few_seconds) / (2.0 * kManyBytes)};
}

double time_host_byte() {
  using Clock = std::chrono::steady_clock;
  constexpr size_t kFloats = 8 << 20;
  constexpr int kPasses = 3;
  const std::vector<float> rows(kFloats, 1);
  std::vector<float> sum(kFloats);
  double least = 0;
  for (int i = 0; i < kPasses; ++i) {
    const Clock::time_point begin = Clock::now();
    std::memcpy(sum.data(), rows.data(), kFloats * sizeof(float));
    for (size_t k = 0; k < kFloats; ++k) sum[k] += rows[k];
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    least = i == 0 ? seconds : std::min(least, seconds);
  }
  return least / (2.0 * kFloats * sizeof(float));
}

}  // namespace hearth
