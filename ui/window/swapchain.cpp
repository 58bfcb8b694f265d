#include "ui/window/swapchain.h"

#include <algorithm>

namespace hearth {

Result<std::unique_ptr<Swapchain>> Swapchain::create(const RenderDevice& device, uint32_t width,
                                                     uint32_t height,
                                                     std::unique_ptr<Swapchain> old) {
  std::unique_ptr<Swapchain> swapchain(new Swapchain(device));
  HEARTH_TRY(swapchain->open(width, height, old ? old->handle_ : VK_NULL_HANDLE));
  return swapchain;
}

Status Swapchain::open(uint32_t width, uint32_t height, VkSwapchainKHR old) {
  const VulkanTable& vk = device_.vk();
  VkSurfaceCapabilitiesKHR caps = {};
  HEARTH_TRY(check_vulkan(
      vk.vkGetPhysicalDeviceSurfaceCapabilitiesKHR(device_.physical(), device_.surface(), &caps),
      "querying the window's size"));
  HEARTH_TRY(choose_format());
  extent_ = caps.currentExtent;
  if (extent_.width == UINT32_MAX) extent_ = {width, height};
  extent_.width = std::clamp(extent_.width, caps.minImageExtent.width, caps.maxImageExtent.width);
  extent_.height =
      std::clamp(extent_.height, caps.minImageExtent.height, caps.maxImageExtent.height);
  readable_ = (caps.supportedUsageFlags & VK_IMAGE_USAGE_TRANSFER_SRC_BIT) != 0;
  writable_ = (caps.supportedUsageFlags & VK_IMAGE_USAGE_TRANSFER_DST_BIT) != 0;
  uint32_t count = caps.minImageCount + 1;
  if (caps.maxImageCount != 0) count = std::min(count, caps.maxImageCount);
  const VkCompositeAlphaFlagBitsKHR alpha =
      (caps.supportedCompositeAlpha & VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR) != 0
          ? VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR
          : VK_COMPOSITE_ALPHA_INHERIT_BIT_KHR;

  VkImageUsageFlags usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT;
  if (readable_) usage |= VK_IMAGE_USAGE_TRANSFER_SRC_BIT;
  if (writable_) usage |= VK_IMAGE_USAGE_TRANSFER_DST_BIT;
  const VkSwapchainCreateInfoKHR info{.sType = VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR,
                                      .surface = device_.surface(),
                                      .minImageCount = count,
                                      .imageFormat = format_,
                                      .imageColorSpace = color_space_,
                                      .imageExtent = extent_,
                                      .imageArrayLayers = 1,
                                      .imageUsage = usage,
                                      .imageSharingMode = VK_SHARING_MODE_EXCLUSIVE,
                                      .preTransform = caps.currentTransform,
                                      .compositeAlpha = alpha,
                                      .presentMode = VK_PRESENT_MODE_FIFO_KHR,
                                      .clipped = VK_TRUE,
                                      .oldSwapchain = old};
  HEARTH_TRY(check_vulkan(vk.vkCreateSwapchainKHR(device_.handle(), &info, nullptr, &handle_),
                          "creating the window's images"));
  return make_images();
}

// ImGui's colours are already in sRGB, so the format must not convert them.
Status Swapchain::choose_format() {
  const VulkanTable& vk = device_.vk();
  uint32_t count = 0;
  vk.vkGetPhysicalDeviceSurfaceFormatsKHR(device_.physical(), device_.surface(), &count, nullptr);
  std::vector<VkSurfaceFormatKHR> formats(count);
  vk.vkGetPhysicalDeviceSurfaceFormatsKHR(device_.physical(), device_.surface(), &count,
                                          formats.data());
  for (const VkFormat wanted : {VK_FORMAT_B8G8R8A8_UNORM, VK_FORMAT_R8G8B8A8_UNORM}) {
    for (const VkSurfaceFormatKHR& one : formats) {
      if (one.format != wanted) continue;
      format_ = one.format;
      color_space_ = one.colorSpace;
      return {};
    }
  }
  return Error{ErrorKind::kUnsupported, "the display has no format with 8 bits per channel"};
}

Status Swapchain::make_images() {
  const VulkanTable& vk = device_.vk();
  uint32_t count = 0;
  vk.vkGetSwapchainImagesKHR(device_.handle(), handle_, &count, nullptr);
  std::vector<VkImage> handles(count);
  HEARTH_TRY(
      check_vulkan(vk.vkGetSwapchainImagesKHR(device_.handle(), handle_, &count, handles.data()),
                   "listing the window's images"));
  images_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    images_[i].image = handles[i];
    const VkImageViewCreateInfo view{
        .sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO,
        .image = handles[i],
        .viewType = VK_IMAGE_VIEW_TYPE_2D,
        .format = format_,
        .subresourceRange = {
            .aspectMask = VK_IMAGE_ASPECT_COLOR_BIT, .levelCount = 1, .layerCount = 1}};
    HEARTH_TRY(
        check_vulkan(vk.vkCreateImageView(device_.handle(), &view, nullptr, &images_[i].view),
                     "creating an image view"));
    const VkSemaphoreCreateInfo semaphore{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
    HEARTH_TRY(
        check_vulkan(vk.vkCreateSemaphore(device_.handle(), &semaphore, nullptr, &images_[i].drawn),
                     "creating a semaphore"));
  }
  return {};
}

Swapchain::~Swapchain() {
  const VulkanTable& vk = device_.vk();
  for (const Image& image : images_) {
    if (image.view != VK_NULL_HANDLE) vk.vkDestroyImageView(device_.handle(), image.view, nullptr);
    if (image.drawn != VK_NULL_HANDLE)
      vk.vkDestroySemaphore(device_.handle(), image.drawn, nullptr);
  }
  if (handle_ != VK_NULL_HANDLE) vk.vkDestroySwapchainKHR(device_.handle(), handle_, nullptr);
}

}  // namespace hearth
