#include "runtime/gpu_timer.h"

#include <fmt/format.h>

#include "runtime/device.h"
#include "runtime/vulkan_private.h"

namespace hearth {

Result<std::unique_ptr<GpuTimer>> GpuTimer::create(Device& device, uint32_t spans) {
  if (device.caps().limits.timestamp_ns == 0)
    return Error{ErrorKind::kUnsupported,
                 fmt::format("{} has no GPU timestamps", device.caps().name)};
  std::unique_ptr<GpuTimer> timer(new GpuTimer(device, spans));
  const VkQueryPoolCreateInfo info{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                   .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                   .queryCount = spans * 2};
  const VkResult result = vkCreateQueryPool(device.handle(), &info, nullptr, &timer->pool_);
  if (result != VK_SUCCESS) return device.error_from(result, "creating timestamps");
  device.set_name(VK_OBJECT_TYPE_QUERY_POOL, timer->pool_, "timestamps");
  return timer;
}

GpuTimer::~GpuTimer() {
  if (pool_ != nullptr) vkDestroyQueryPool(device_.handle(), pool_, nullptr);
}

void GpuTimer::record_reset(VkCommandBuffer commands) {
  labels_.clear();
  vkCmdResetQueryPool(commands, pool_, 0, capacity_ * 2);
}

void GpuTimer::record_begin(VkCommandBuffer commands, std::string_view label) {
  open_ = labels_.size() < capacity_;
  if (!open_) return;
  vkCmdWriteTimestamp2(commands, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, pool_,
                       static_cast<uint32_t>(labels_.size() * 2));
  labels_.emplace_back(label);
}

void GpuTimer::record_end(VkCommandBuffer commands) {
  if (!open_) return;
  vkCmdWriteTimestamp2(commands, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, pool_,
                       static_cast<uint32_t>(labels_.size() * 2 - 1));
  open_ = false;
}

Result<std::vector<GpuSpan>> GpuTimer::read() const {
  if (device_.lost()) return device_.lost_error();
  if (labels_.empty()) return std::vector<GpuSpan>{};
  std::vector<uint64_t> ticks(labels_.size() * 2);
  const VkResult result = vkGetQueryPoolResults(
      device_.handle(), pool_, 0, static_cast<uint32_t>(ticks.size()),
      ticks.size() * sizeof(uint64_t), ticks.data(), sizeof(uint64_t), VK_QUERY_RESULT_64_BIT);
  if (result == VK_NOT_READY)
    return Error{ErrorKind::kInvalid, "GPU times were read before the commands had run"};
  if (result != VK_SUCCESS) return device_.error_from(result, "reading timestamps");

  const double tick_seconds = device_.caps().limits.timestamp_ns * 1e-9;
  std::vector<GpuSpan> spans;
  for (size_t i = 0; i < labels_.size(); ++i)
    spans.push_back(
        {.label = labels_[i],
         .start_seconds = static_cast<double>(ticks[2 * i] - ticks[0]) * tick_seconds,
         .seconds = static_cast<double>(ticks[2 * i + 1] - ticks[2 * i]) * tick_seconds});
  return spans;
}

}  // namespace hearth
