#include "ui/window/screenshot.h"

#include <optional>
#include <vector>

#include <fmt/format.h>
#include <png.h>

namespace hearth {

Result<std::unique_ptr<Screenshot>> Screenshot::create(const RenderDevice& device,
                                                       const Swapchain& swapchain) {
  std::unique_ptr<Screenshot> screenshot(new Screenshot(device));
  HEARTH_TRY(screenshot->open(swapchain));
  return screenshot;
}

Status Screenshot::open(const Swapchain& swapchain) {
  if (!swapchain.readable())
    return Error{ErrorKind::kUnsupported,
                 "this display does not allow screenshots: its images cannot be read back"};
  extent_ = swapchain.extent();
  blue_first_ = swapchain.format() == VK_FORMAT_B8G8R8A8_UNORM;
  const VulkanTable& vk = device_.vk();
  const VkBufferCreateInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                .size = VkDeviceSize{4} * extent_.width * extent_.height,
                                .usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT};
  HEARTH_TRY(check_vulkan(vk.vkCreateBuffer(device_.handle(), &info, nullptr, &buffer_),
                          "creating the screenshot's buffer"));
  VkMemoryRequirements needs = {};
  vk.vkGetBufferMemoryRequirements(device_.handle(), buffer_, &needs);
  const std::optional<uint32_t> type = device_.host_memory_type(needs.memoryTypeBits);
  if (!type)
    return Error{ErrorKind::kUnsupported, "the device has no memory that the host can read"};
  const VkMemoryAllocateInfo allocation{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                        .allocationSize = needs.size,
                                        .memoryTypeIndex = *type};
  HEARTH_TRY(check_vulkan(vk.vkAllocateMemory(device_.handle(), &allocation, nullptr, &memory_),
                          "allocating the screenshot's memory"));
  HEARTH_TRY(check_vulkan(vk.vkBindBufferMemory(device_.handle(), buffer_, memory_, 0),
                          "binding the screenshot's memory"));
  return check_vulkan(vk.vkMapMemory(device_.handle(), memory_, 0, VK_WHOLE_SIZE, 0, &pixels_),
                      "mapping the screenshot's memory");
}

void Screenshot::record(VkCommandBuffer commands, VkImage image) const {
  const VkBufferImageCopy copy{
      .imageSubresource = {.aspectMask = VK_IMAGE_ASPECT_COLOR_BIT, .layerCount = 1},
      .imageExtent = {extent_.width, extent_.height, 1}};
  device_.vk().vkCmdCopyImageToBuffer(commands, image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
                                      buffer_, 1, &copy);
  const VkMemoryBarrier2 to_host{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                                 .srcStageMask = VK_PIPELINE_STAGE_2_COPY_BIT,
                                 .srcAccessMask = VK_ACCESS_2_TRANSFER_WRITE_BIT,
                                 .dstStageMask = VK_PIPELINE_STAGE_2_HOST_BIT,
                                 .dstAccessMask = VK_ACCESS_2_HOST_READ_BIT};
  const VkDependencyInfo dependency{.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                    .memoryBarrierCount = 1,
                                    .pMemoryBarriers = &to_host};
  device_.vk().vkCmdPipelineBarrier2(commands, &dependency);
}

Status Screenshot::write(const std::filesystem::path& path) const {
  // Drops the alpha channel.
  std::vector<unsigned char> rgb(size_t{3} * extent_.width * extent_.height);
  const auto* from = static_cast<const unsigned char*>(pixels_);
  for (size_t i = 0; i < rgb.size() / 3; ++i) {
    rgb[3 * i] = from[4 * i + (blue_first_ ? 2 : 0)];
    rgb[3 * i + 1] = from[4 * i + 1];
    rgb[3 * i + 2] = from[4 * i + (blue_first_ ? 0 : 2)];
  }
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = extent_.width;
  image.height = extent_.height;
  image.format = PNG_FORMAT_RGB;
  if (png_image_write_to_file(&image, path.c_str(), 0, rgb.data(), 0, nullptr) == 0)
    return Error{ErrorKind::kIo, fmt::format("cannot write {}: {}", path.string(), image.message)};
  return {};
}

Screenshot::~Screenshot() {
  const VulkanTable& vk = device_.vk();
  if (buffer_ != VK_NULL_HANDLE) vk.vkDestroyBuffer(device_.handle(), buffer_, nullptr);
  if (memory_ != VK_NULL_HANDLE) vk.vkFreeMemory(device_.handle(), memory_, nullptr);
}

}  // namespace hearth
