#include "runtime/queue.h"

#include <array>
#include <cassert>
#include <vector>

#include "runtime/command_recorder.h"
#include "runtime/device.h"
#include "runtime/vulkan_private.h"

namespace hearth {

Result<std::unique_ptr<Queue>> Queue::create(Device& device, int family, const char* name) {
  std::unique_ptr<Queue> queue(new Queue(device, static_cast<uint32_t>(family)));
  vkGetDeviceQueue(device.handle(), queue->family_, 0, &queue->handle_);
  device.set_name(VK_OBJECT_TYPE_QUEUE, queue->handle_, name);
  HEARTH_ASSIGN(queue->timeline_, Timeline::create(device, name));
  return queue;
}

Result<TimelinePoint> Queue::submit(const CommandBuffer& commands,
                                    std::span<const TimelinePoint> after) {
  const CommandBuffer* const batch[] = {&commands};
  return submit(batch, after);
}

Result<TimelinePoint> Queue::submit(std::span<const CommandBuffer* const> batch,
                                    std::span<const TimelinePoint> after) {
  assert(batch.size() <= kMaxBatch);
  if (device_.lost()) return device_.lost_error();
  if (device_.faults().submission.should_fail()) {
    // A lost device has no work in flight, so the injected fault waits for it.
    vkDeviceWaitIdle(device_.handle());
    return device_.error_from(VK_ERROR_DEVICE_LOST, "submitting work");
  }

  timeline_->collect();
  std::vector<VkSemaphoreSubmitInfo> waits;
  for (const TimelinePoint& point : after)
    waits.push_back({.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                     .semaphore = point.timeline->handle(),
                     .value = point.value,
                     .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT});
  std::array<VkCommandBufferSubmitInfo, kMaxBatch> buffers;
  for (size_t i = 0; i < batch.size(); ++i)
    buffers[i] = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO,
                  .commandBuffer = batch[i]->handle()};

  const std::lock_guard lock(mutex_);
  const TimelinePoint point{timeline_.get(), timeline_->next()};
  const VkSemaphoreSubmitInfo signal{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                                     .semaphore = timeline_->handle(),
                                     .value = point.value,
                                     .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT};
  const VkSubmitInfo2 info{
      .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
      .waitSemaphoreInfoCount = static_cast<uint32_t>(waits.size()),
      .pWaitSemaphoreInfos = waits.data(),
      .commandBufferInfoCount = static_cast<uint32_t>(batch.size()),
      .pCommandBufferInfos = buffers.data(),
      .signalSemaphoreInfoCount = 1,
      .pSignalSemaphoreInfos = &signal,
  };
  const VkResult result = vkQueueSubmit2(handle_, 1, &info, nullptr);
  if (result != VK_SUCCESS) {
    // Nothing will signal this value; without cancelling it a later wait would never return.
    timeline_->cancel_next();
    return device_.error_from(result, "submitting work");
  }
  return point;
}

Status Queue::run(const CommandBuffer& commands) {
  HEARTH_ASSIGN(const TimelinePoint point, submit(commands));
  return wait(point);
}

}  // namespace hearth
