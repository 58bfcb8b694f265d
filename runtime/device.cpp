#include "runtime/device.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/chain_guard.h"
#include "runtime/device_query.h"
#include "runtime/device_select.h"
#include "runtime/instance.h"
#include "runtime/memory.h"
#include "runtime/queue.h"
#include "runtime/vulkan_private.h"

namespace hearth {

Device::Device(Instance& instance, size_t position)
    : instance_(instance),
      caps_(instance.devices()[position]),
      physical_(instance.physical_device(position)) {
#ifdef NDEBUG
  names_ = instance.debug_names() && instance.validation() != Validation::kOff;
#else
  names_ = instance.debug_names();
#endif
}

Result<std::unique_ptr<Device>> Device::create(Instance& instance, size_t position,
                                               DeviceUse use) {
  std::unique_ptr<Device> device(new Device(instance, position));
  HEARTH_TRY(device->open(use));
  return device;
}

Result<std::unique_ptr<Device>> Device::open(Instance& instance, std::string_view wanted) {
  HEARTH_ASSIGN(const size_t position, select_device(instance.devices(), wanted));
  return create(instance, position);
}

Status Device::open(DeviceUse use) {
  const float priority = 1.0f;
  std::vector<VkDeviceQueueCreateInfo> queues;
  for (const int family : {caps_.queues.compute, caps_.queues.transfer}) {
    if (family < 0) continue;
    queues.push_back({.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                      .queueFamilyIndex = static_cast<uint32_t>(family),
                      .queueCount = 1,
                      .pQueuePriorities = &priority});
  }
  const std::vector<const char*> extensions = useful_extensions(physical_);
  FeatureChain chain(extensions);
  enable_features(caps_.features, chain);
  const VkDeviceCreateInfo info{
      .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
      .pNext = &chain.core,
      .queueCreateInfoCount = static_cast<uint32_t>(queues.size()),
      .pQueueCreateInfos = queues.data(),
      .enabledExtensionCount = static_cast<uint32_t>(extensions.size()),
      .ppEnabledExtensionNames = extensions.data(),
  };
  const VkResult result = vkCreateDevice(physical_, &info, nullptr, &handle_);
  if (result != VK_SUCCESS)
    return vulkan_error(result, fmt::format("opening device {} ({})", caps_.index, caps_.name));
  set_name(VK_OBJECT_TYPE_DEVICE, handle_, caps_.name);

  chain_ = std::make_unique<ChainGuard>(*this);
  if (use == DeviceUse::kCompile) return {};
  HEARTH_ASSIGN(memory_, Memory::create(*this));
  HEARTH_ASSIGN(compute_, Queue::create(*this, caps_.queues.compute, "compute"));
  if (caps_.queues.transfer >= 0) {
    HEARTH_ASSIGN(transfer_, Queue::create(*this, caps_.queues.transfer, "transfer"));
  }
  if (caps_.features.ordered_groups) HEARTH_TRY(chain_->open());
  return {};
}

Device::~Device() {
  if (handle_ == nullptr) return;
  if (compute_ != nullptr) vkDeviceWaitIdle(handle_);
  chain_.reset();
  transfer_.reset();
  compute_.reset();
  memory_.reset();
  vkDestroyDevice(handle_, nullptr);
}

Error Device::lost_error() const {
  return {ErrorKind::kDeviceLost,
          fmt::format("the device '{}' was lost (driver reset, removal or a fault in a kernel)",
                      caps_.name)};
}

Error Device::error_from(int vk_result, std::string_view what) {
  const auto result = static_cast<VkResult>(vk_result);
  if (result != VK_ERROR_DEVICE_LOST) return vulkan_error(result, what);
  mark_lost();
  Error error = lost_error();
  error.message += fmt::format(", seen while {}", what);
  return error;
}

void Device::set_name(int object_type, const void* object, std::string_view name) const {
  if (!names_) return;
  const std::string text(name);
  const VkDebugUtilsObjectNameInfoEXT info{
      .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
      .objectType = static_cast<VkObjectType>(object_type),
      .objectHandle = reinterpret_cast<uint64_t>(object),
      .pObjectName = text.c_str(),
  };
  vkSetDebugUtilsObjectNameEXT(handle_, &info);
}

}  // namespace hearth
