#include "ui/window/render_device.h"

#include <vector>

#include <GLFW/glfw3.h>

#include "runtime/device_select.h"

namespace hearth {

Result<std::unique_ptr<RenderDevice>> RenderDevice::create(GLFWwindow* window,
                                                           const RenderDeviceOptions& options) {
  std::unique_ptr<RenderDevice> device(new RenderDevice);
  HEARTH_TRY(device->open(window, options));
  return device;
}

Status RenderDevice::open(GLFWwindow* window, const RenderDeviceOptions& options) {
  uint32_t count = 0;
  const char** names = glfwGetRequiredInstanceExtensions(&count);
  if (names == nullptr)
    return Error{ErrorKind::kUnsupported, "this display cannot show Vulkan images"};
  HEARTH_ASSIGN(instance_, Instance::create({.validation = options.validation,
                                             .extensions = {names, names + count}}));
  if (instance_->handle() == nullptr)
    return Error{ErrorKind::kNotFound, "no Vulkan driver found to draw the window"};
  HEARTH_ASSIGN(vk_, VulkanTable::load(instance_->handle()));
  HEARTH_TRY(check_vulkan(glfwCreateWindowSurface(instance_->handle(), window, nullptr, &surface_),
                          "creating the window's surface"));
  HEARTH_TRY(choose(options.device));

  const float priority = 0.5f;
  const VkDeviceQueueCreateInfo queue{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                      .queueFamilyIndex = family_,
                                      .queueCount = 1,
                                      .pQueuePriorities = &priority};
  const VkPhysicalDeviceVulkan13Features features{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
      .synchronization2 = VK_TRUE,
      .dynamicRendering = VK_TRUE};
  const char* extension = VK_KHR_SWAPCHAIN_EXTENSION_NAME;
  const VkDeviceCreateInfo info{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                .pNext = &features,
                                .queueCreateInfoCount = 1,
                                .pQueueCreateInfos = &queue,
                                .enabledExtensionCount = 1,
                                .ppEnabledExtensionNames = &extension};
  HEARTH_TRY(check_vulkan(vk_.vkCreateDevice(physical_, &info, nullptr, &device_),
                          "opening the window's device"));
  vk_.vkGetDeviceQueue(device_, family_, 0, &queue_);
  return {};
}

bool RenderDevice::find_family(VkPhysicalDevice device, uint32_t& family) const {
  uint32_t count = 0;
  vk_.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vk_.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  for (family = 0; family < count; ++family) {
    VkBool32 presents = VK_FALSE;
    vk_.vkGetPhysicalDeviceSurfaceSupportKHR(device, family, surface_, &presents);
    if (presents == VK_TRUE && (families[family].queueFlags & VK_QUEUE_GRAPHICS_BIT) != 0)
      return true;
  }
  return false;
}

Status RenderDevice::choose(const std::string& requested) {
  const std::vector<DeviceCaps>& devices = instance_->devices();
  HEARTH_ASSIGN(position_, select_device(devices, requested));
  if (!find_family(instance_->physical_device(position_), family_)) {
    if (!requested.empty())
      return Error{ErrorKind::kUnsupported,
                   devices[position_].name + " cannot show a window on this display"};
    for (position_ = 0; position_ < devices.size(); ++position_)
      if (devices[position_].api_minor >= 3 &&
          find_family(instance_->physical_device(position_), family_))
        break;
    if (position_ == devices.size())
      return Error{ErrorKind::kUnsupported, "no Vulkan device can show a window on this display"};
  }
  physical_ = instance_->physical_device(position_);
  return {};
}

std::optional<uint32_t> RenderDevice::host_memory_type(uint32_t allowed) const {
  VkPhysicalDeviceMemoryProperties memory = {};
  vk_.vkGetPhysicalDeviceMemoryProperties(physical_, &memory);
  constexpr VkMemoryPropertyFlags kWanted =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  for (uint32_t type = 0; type < memory.memoryTypeCount; ++type)
    if ((allowed >> type & 1) != 0 && (memory.memoryTypes[type].propertyFlags & kWanted) == kWanted)
      return type;
  return std::nullopt;
}

RenderDevice::~RenderDevice() {
  if (device_ != VK_NULL_HANDLE) {
    vk_.vkDeviceWaitIdle(device_);
    vk_.vkDestroyDevice(device_, nullptr);
  }
  if (surface_ != VK_NULL_HANDLE) vk_.vkDestroySurfaceKHR(instance_->handle(), surface_, nullptr);
}

}  // namespace hearth
