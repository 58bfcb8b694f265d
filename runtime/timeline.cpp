#include "runtime/timeline.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "runtime/device.h"
#include "runtime/vulkan_private.h"

namespace hearth {

std::chrono::seconds gpu_patience(DeviceType type) {
  switch (type) {
    case DeviceType::kDiscrete:
      return std::chrono::seconds(10);
    case DeviceType::kIntegrated:
    case DeviceType::kVirtual:
    case DeviceType::kOther:
      return std::chrono::minutes(1);
    case DeviceType::kCpu:
      break;
  }
  return std::chrono::minutes(10);
}

Result<std::unique_ptr<Timeline>> Timeline::create(Device& device, const char* name) {
  std::unique_ptr<Timeline> timeline(new Timeline(device));
  const VkSemaphoreTypeCreateInfo type{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                       .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
                                       .initialValue = 0};
  const VkSemaphoreCreateInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                   .pNext = &type};
  const VkResult result = vkCreateSemaphore(device.handle(), &info, nullptr, &timeline->handle_);
  if (result != VK_SUCCESS) return vulkan_error(result, "creating a timeline semaphore");
  device.set_name(VK_OBJECT_TYPE_SEMAPHORE, timeline->handle_, name);
  return timeline;
}

Timeline::~Timeline() {
  to_release_.clear();
  if (handle_ != nullptr) vkDestroySemaphore(device_.handle(), handle_, nullptr);
}

Result<uint64_t> Timeline::reached() const {
  if (device_.lost()) return device_.lost_error();
  uint64_t value = 0;
  const VkResult result = vkGetSemaphoreCounterValue(device_.handle(), handle_, &value);
  if (result != VK_SUCCESS) return device_.error_from(result, "reading the GPU's progress");
  return value;
}

Status Timeline::wait(uint64_t value, std::chrono::nanoseconds limit) const {
  if (device_.lost()) return device_.lost_error();
  const VkSemaphoreWaitInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                 .semaphoreCount = 1,
                                 .pSemaphores = &handle_,
                                 .pValues = &value};
  if (limit.count() == 0) limit = gpu_patience(device_.caps().type);
  const VkResult result =
      vkWaitSemaphores(device_.handle(), &info, static_cast<uint64_t>(limit.count()));
  if (result == VK_TIMEOUT) {
    device_.mark_lost();
    return Error{
        ErrorKind::kDeviceLost,
        fmt::format("the device '{}' is treated as lost: it did not finish within {:.3g} s",
                    device_.caps().name, std::chrono::duration<double>(limit).count())};
  }
  if (result != VK_SUCCESS) return device_.error_from(result, "waiting for the GPU");
  return {};
}

Status Timeline::wait_promptly(uint64_t value) const {
  if (device_.caps().type == DeviceType::kCpu) return wait(value);
  const auto end = std::chrono::steady_clock::now() + kPolling;
  while (std::chrono::steady_clock::now() < end) {
    HEARTH_ASSIGN(const uint64_t now, reached());
    if (now >= value) return {};
    std::this_thread::yield();
  }
  return wait(value);
}

void Timeline::collect() {
  const Result<uint64_t> now = reached();
  // If the device is lost, nothing runs any more and everything can be destroyed. After any other
  // error, such as running out of memory, it is unknown what still runs.
  if (!now.ok() && !device_.lost()) return;
  const uint64_t value = now.ok() ? *now : UINT64_MAX;
  std::vector<Entry> done;  // destroyed after the lock is released
  {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < to_release_.size();) {
      if (to_release_[i].value > value) {
        ++i;
        continue;
      }
      done.push_back(std::move(to_release_[i]));
      to_release_[i] = std::move(to_release_.back());
      to_release_.pop_back();
    }
  }
}

size_t Timeline::held_count() const {
  const std::lock_guard lock(mutex_);
  return to_release_.size();
}

}  // namespace hearth
