#include "ui/window/host_canvas.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

namespace hearth {
namespace {

static_assert(sizeof(PaintVertex) == sizeof(ImDrawVert) &&
              offsetof(PaintVertex, u) == offsetof(ImDrawVert, uv) &&
              offsetof(PaintVertex, color) == offsetof(ImDrawVert, col));
static_assert(sizeof(ImDrawIdx) == sizeof(uint16_t));

// ImGui keeps the texels, so that there is nothing to copy.
void take_textures(const ImDrawData& data) {
  if (data.Textures == nullptr) return;
  for (ImTextureData* texture : *data.Textures) {
    if (texture->Status == ImTextureStatus_WantCreate ||
        texture->Status == ImTextureStatus_WantUpdates) {
      texture->SetTexID(static_cast<ImTextureID>(texture->UniqueID + 1));
      texture->SetStatus(ImTextureStatus_OK);
    } else if (texture->Status == ImTextureStatus_WantDestroy) {
      texture->SetTexID(ImTextureID_Invalid);
      texture->SetStatus(ImTextureStatus_Destroyed);
    }
  }
}

PaintMask mask_of(const ImDrawCmd& command) {
  const ImTextureData* const texture = command.TexRef._TexData;
  if (texture == nullptr || texture->Pixels == nullptr) return {};
  // The opacity is the last byte of a texel.
  return {.texels = texture->Pixels + texture->BytesPerPixel - 1,
          .width = texture->Width,
          .height = texture->Height,
          .step = texture->BytesPerPixel};
}

}  // namespace

Result<std::unique_ptr<HostCanvas>> HostCanvas::create(const RenderDevice& device,
                                                       const Swapchain& swapchain) {
  std::unique_ptr<HostCanvas> canvas(new HostCanvas(device));
  HEARTH_TRY(canvas->open(swapchain));
  return canvas;
}

Status HostCanvas::open(const Swapchain& swapchain) {
  const VkExtent2D extent = swapchain.extent();
  const VulkanTable& vk = device_.vk();
  const VkBufferCreateInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                .size = VkDeviceSize{4} * extent.width * extent.height,
                                .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT};
  HEARTH_TRY(check_vulkan(vk.vkCreateBuffer(device_.handle(), &info, nullptr, &buffer_),
                          "creating the window's buffer"));
  VkMemoryRequirements needs = {};
  vk.vkGetBufferMemoryRequirements(device_.handle(), buffer_, &needs);
  const std::optional<uint32_t> type = device_.host_memory_type(needs.memoryTypeBits);
  if (!type)
    return Error{ErrorKind::kUnsupported, "the device has no memory that the host can write"};
  const VkMemoryAllocateInfo allocation{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                        .allocationSize = needs.size,
                                        .memoryTypeIndex = *type};
  HEARTH_TRY(check_vulkan(vk.vkAllocateMemory(device_.handle(), &allocation, nullptr, &memory_),
                          "allocating the window's memory"));
  HEARTH_TRY(check_vulkan(vk.vkBindBufferMemory(device_.handle(), buffer_, memory_, 0),
                          "binding the window's memory"));
  void* pixels = nullptr;
  HEARTH_TRY(check_vulkan(vk.vkMapMemory(device_.handle(), memory_, 0, VK_WHOLE_SIZE, 0, &pixels),
                          "mapping the window's memory"));
  target_ = {.pixels = static_cast<uint32_t*>(pixels),
             .width = static_cast<int>(extent.width),
             .height = static_cast<int>(extent.height),
             .blue_first = swapchain.format() == VK_FORMAT_B8G8R8A8_UNORM};
  return {};
}

HostCanvas::~HostCanvas() {
  const VulkanTable& vk = device_.vk();
  if (buffer_ != VK_NULL_HANDLE) vk.vkDestroyBuffer(device_.handle(), buffer_, nullptr);
  if (memory_ != VK_NULL_HANDLE) vk.vkFreeMemory(device_.handle(), memory_, nullptr);
}

void HostCanvas::announce() {
  ImGuiIO& io = ImGui::GetIO();
  io.BackendRendererName = "hearth_host_canvas";
  io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset | ImGuiBackendFlags_RendererHasTextures;
}

PaintBox HostCanvas::clip_of(const ImDrawData& data, const ImDrawCmd& command) const {
  const auto pixel = [](float place, float origin, float scale) {
    return static_cast<int>(std::clamp((place - origin) * scale, -1.0f, 32767.0f));
  };
  const ImVec4& clip = command.ClipRect;
  return PaintBox{pixel(clip.x, data.DisplayPos.x, data.FramebufferScale.x),
                  pixel(clip.y, data.DisplayPos.y, data.FramebufferScale.y),
                  pixel(clip.z, data.DisplayPos.x, data.FramebufferScale.x),
                  pixel(clip.w, data.DisplayPos.y, data.FramebufferScale.y)}
      .cut({0, 0, target_.width, target_.height});
}

HostCanvas::Drawn HostCanvas::look_at(const ImDrawData& data, const ImDrawList& list) const {
  Drawn drawn;
  drawn.hash = paint_hash(
      list.VtxBuffer.Data, static_cast<size_t>(list.VtxBuffer.size_in_bytes()),
      paint_hash(list.IdxBuffer.Data, static_cast<size_t>(list.IdxBuffer.size_in_bytes()), 0));
  for (const ImDrawCmd& command : list.CmdBuffer) {
    if (command.ElemCount == 0) continue;
    const PaintBox clip = clip_of(data, command);
    drawn.hash = paint_hash(&clip, sizeof clip, drawn.hash + command.ElemCount);
    drawn.box = drawn.box.joined(clip);
  }
  return drawn;
}

// Boxes that do not overlap and hold everything that differs from the last frame.
std::vector<PaintBox> HostCanvas::changed_boxes(const ImDrawData& data, ImU32 background) {
  std::vector<Drawn> now;
  for (const ImDrawList* list : data.CmdLists) now.push_back(look_at(data, *list));
  std::vector<PaintBox> boxes;
  const auto add = [&](PaintBox box) {
    for (size_t i = 0; i < boxes.size();) {
      if (box.cut(boxes[i]).empty()) {
        ++i;
        continue;
      }
      box = box.joined(boxes[i]);
      boxes.erase(boxes.begin() + static_cast<std::ptrdiff_t>(i));
      i = 0;
    }
    if (!box.empty()) boxes.push_back(box);
  };
  if (drawn_.empty() || background != background_) {
    add({0, 0, target_.width, target_.height});
  } else {
    for (size_t i = 0; i < std::max(now.size(), drawn_.size()); ++i) {
      const Drawn before = i < drawn_.size() ? drawn_[i] : Drawn();
      const Drawn after = i < now.size() ? now[i] : Drawn();
      if (before.hash == after.hash && before.box == after.box) continue;
      add(before.box);
      add(after.box);
    }
  }
  drawn_ = std::move(now);
  background_ = background;
  return boxes;
}

void HostCanvas::paint(const ImDrawData& data, ImU32 background) {
  take_textures(data);
  Painter painter(target_, data.FramebufferScale.x);
  for (const PaintBox& box : changed_boxes(data, background)) {
    painter.fill(box, background | IM_COL32_A_MASK);
    for (size_t i = 0; i < drawn_.size(); ++i) {
      const ImDrawList& list = *data.CmdLists[static_cast<int>(i)];
      if (drawn_[i].box.cut(box).empty()) continue;
      for (const ImDrawCmd& command : list.CmdBuffer) {
        const auto* const vertices =
            reinterpret_cast<const PaintVertex*>(list.VtxBuffer.Data + command.VtxOffset);
        painter.draw({vertices, static_cast<size_t>(list.VtxBuffer.Size) - command.VtxOffset},
                     {list.IdxBuffer.Data + command.IdxOffset, command.ElemCount}, mask_of(command),
                     clip_of(data, command).cut(box));
      }
    }
  }
}

void HostCanvas::record(VkCommandBuffer commands, VkImage image) const {
  const VkBufferImageCopy copy{
      .imageSubresource = {.aspectMask = VK_IMAGE_ASPECT_COLOR_BIT, .layerCount = 1},
      .imageExtent = {static_cast<uint32_t>(target_.width), static_cast<uint32_t>(target_.height),
                      1}};
  device_.vk().vkCmdCopyBufferToImage(commands, buffer_, image,
                                      VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &copy);
}

}  // namespace hearth
