// A queue and its timeline. Submissions run in order; each signals the next value of the timeline.
// Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <span>

#include "runtime/result.h"
#include "runtime/timeline.h"
#include "runtime/vulkan_handles.h"

namespace hearth {

class CommandBuffer;
class Device;

class Queue {
 public:
  static Result<std::unique_ptr<Queue>> create(Device& device, int family, const char* name);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Runs recorded commands after everything submitted to this queue before, and after the points of
  // other queues in `after`. The same commands may be submitted again at once, even while they
  // still run: they then run again, in order.
  Result<TimelinePoint> submit(const CommandBuffer& commands,
                               std::span<const TimelinePoint> after = {});
  // The same for several command buffers in sequence, at the cost of one submission. Does not
  // allocate. REQUIRES: batch.size() <= kMaxBatch.
  static constexpr size_t kMaxBatch = 8;
  Result<TimelinePoint> submit(std::span<const CommandBuffer* const> batch,
                               std::span<const TimelinePoint> after = {});
  // submit(), then wait.
  Status run(const CommandBuffer& commands);

  Status wait(const TimelinePoint& point) { return point.timeline->wait(point.value); }
  // Waits until everything submitted so far has run.
  Status wait_idle() { return timeline_->wait(timeline_->last_submitted()); }

  Timeline& timeline() { return *timeline_; }
  uint32_t family() const { return family_; }

 private:
  Queue(Device& device, uint32_t family) : device_(device), family_(family) {}

  Device& device_;
  uint32_t family_;
  VkQueue handle_ = nullptr;
  std::mutex mutex_;
  std::unique_ptr<Timeline> timeline_;
};

}  // namespace hearth
