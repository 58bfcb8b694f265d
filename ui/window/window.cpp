#include "ui/window/window.h"

#include <algorithm>
#include <utility>

#include <GLFW/glfw3.h>
#include <fmt/format.h>
#include <imgui.h>
#include <imgui_impl_glfw.h>

#include "ui/window/screenshot.h"

namespace hearth {
namespace {

constexpr uint64_t kForever = UINT64_MAX;

// A monitor was connected or removed. GLFW tells this to a plain function.
bool monitors_changed = false;

}  // namespace

Result<std::unique_ptr<Window>> Window::create(const WindowOptions& options) {
  std::unique_ptr<Window> window(new Window);
  HEARTH_TRY(window->open(options));
  return window;
}

Status Window::open(const WindowOptions& options) {
  if (!has_display_variable())
    return Error{ErrorKind::kNotFound,
                 "no display: the dashboard needs a desktop session (DISPLAY or WAYLAND_DISPLAY); "
                 "try `hearth chat`, or `xvfb-run hearth dash`"};
  if (!start_glfw())
    return Error{ErrorKind::kNotFound, fmt::format("cannot open the display: {}", glfw_error())};
  started_ = true;
  if (glfwVulkanSupported() == GLFW_FALSE)
    return Error{ErrorKind::kUnsupported,
                 fmt::format("the display does not support Vulkan: {}", glfw_error())};
  glfwWindowHint(GLFW_CLIENT_API, GLFW_NO_API);
  glfwWindowHint(GLFW_SCALE_TO_MONITOR, GLFW_TRUE);
  const auto [width, height] = fitting_size(options.width, options.height);
  scale_ = options.scale;
  window_ = glfwCreateWindow(width, height, options.title.c_str(), nullptr, nullptr);
  if (window_ == nullptr)
    return Error{ErrorKind::kNotFound, fmt::format("cannot open a window: {}", glfw_error())};
  glfwSetWindowUserPointer(window_, this);
  glfwSetDropCallback(window_, [](GLFWwindow* window, int count, const char** paths) {
    auto* self = static_cast<Window*>(glfwGetWindowUserPointer(window));
    self->dropped_.insert(self->dropped_.end(), paths, paths + count);
  });
  glfwSetFramebufferSizeCallback(window_, [](GLFWwindow* window, int, int) {
    auto* self = static_cast<Window*>(glfwGetWindowUserPointer(window));
    self->stale_ = self->rescale_ = true;
  });
  glfwSetWindowPosCallback(window_, [](GLFWwindow* window, int, int) {
    static_cast<Window*>(glfwGetWindowUserPointer(window))->rescale_ = true;
  });
  glfwSetWindowContentScaleCallback(window_, [](GLFWwindow* window, float, float) {
    static_cast<Window*>(glfwGetWindowUserPointer(window))->rescale_ = true;
  });
  glfwSetWindowRefreshCallback(window_, [](GLFWwindow* window) {
    static_cast<Window*>(glfwGetWindowUserPointer(window))->exposed_ = true;
  });
  always_vulkan_ = options.always_vulkan;
  HEARTH_ASSIGN(device_, RenderDevice::create(window_, options.device));
  HEARTH_TRY(make_swapchain());
  HEARTH_TRY(make_frames());
  return start_imgui();
}

Status Window::make_swapchain() {
  device_->vk().vkDeviceWaitIdle(device_->handle());
  int width = 0, height = 0;
  glfwGetFramebufferSize(window_, &width, &height);
  HEARTH_ASSIGN(swapchain_,
                Swapchain::create(*device_, static_cast<uint32_t>(width),
                                  static_cast<uint32_t>(height), std::move(swapchain_)));
  stale_ = false;
  exposed_ = true;
  // Once ImGui's own backend has started, it goes on drawing.
  if (!drawn_by_cpu() || always_vulkan_ || !swapchain_->writable() || imgui_vulkan_) return {};
  canvas_.reset();
  HEARTH_ASSIGN(canvas_, HostCanvas::create(*device_, *swapchain_));
  return {};
}

Status Window::make_frames() {
  const VulkanTable& vk = device_->vk();
  for (Frame& frame : frames_) {
    const VkCommandPoolCreateInfo pool{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                       .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                                       .queueFamilyIndex = device_->queue_family()};
    HEARTH_TRY(check_vulkan(vk.vkCreateCommandPool(device_->handle(), &pool, nullptr, &frame.pool),
                            "creating a command pool"));
    const VkCommandBufferAllocateInfo buffer{
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = frame.pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1};
    HEARTH_TRY(
        check_vulkan(vk.vkAllocateCommandBuffers(device_->handle(), &buffer, &frame.commands),
                     "allocating a command buffer"));
    const VkFenceCreateInfo fence{.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO,
                                  .flags = VK_FENCE_CREATE_SIGNALED_BIT};
    HEARTH_TRY(check_vulkan(vk.vkCreateFence(device_->handle(), &fence, nullptr, &frame.done),
                            "creating a fence"));
    const VkSemaphoreCreateInfo semaphore{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
    HEARTH_TRY(
        check_vulkan(vk.vkCreateSemaphore(device_->handle(), &semaphore, nullptr, &frame.acquired),
                     "creating a semaphore"));
  }
  return {};
}

Status Window::start_imgui() {
  imgui_glfw_ = ImGui_ImplGlfw_InitForVulkan(window_, true);
  if (!imgui_glfw_) return Error{ErrorKind::kInternal, "cannot start Dear ImGui's GLFW backend"};
  // In place of the backend's own, which does nothing.
  glfwSetMonitorCallback([](GLFWmonitor*, int) { monitors_changed = true; });
  if (!canvas_) return start_imgui_vulkan();
  HostCanvas::announce();
  return {};
}

Status Window::start_imgui_vulkan() {
  const auto load = [](const char* name, void* instance) {
    return reinterpret_cast<PFN_vkVoidFunction>(
        glfwGetInstanceProcAddress(static_cast<VkInstance>(instance), name));
  };
  const VkFormat format = swapchain_->format();
  const auto images = static_cast<uint32_t>(swapchain_->images().size());
  ImGui_ImplVulkan_InitInfo info = {};
  info.ApiVersion = VK_API_VERSION_1_3;
  info.Instance = device_->instance().handle();
  info.PhysicalDevice = device_->physical();
  info.Device = device_->handle();
  info.QueueFamily = device_->queue_family();
  info.Queue = device_->queue();
  info.MinImageCount = 2;
  info.ImageCount = std::max(images, 2u);
  info.DescriptorPoolSize = 2 * IMGUI_IMPL_VULKAN_MINIMUM_IMAGE_SAMPLER_POOL_SIZE;
  info.UseDynamicRendering = true;
  info.PipelineRenderingCreateInfo = {.sType = VK_STRUCTURE_TYPE_PIPELINE_RENDERING_CREATE_INFO,
                                      .colorAttachmentCount = 1,
                                      .pColorAttachmentFormats = &format};
  info.MinAllocationSize = 1024 * 1024;
  imgui_vulkan_ = ImGui_ImplVulkan_LoadFunctions(VK_API_VERSION_1_3, load, info.Instance) &&
                  ImGui_ImplVulkan_Init(&info);
  if (imgui_vulkan_) return {};
  return Error{ErrorKind::kInternal, "cannot start Dear ImGui's Vulkan backend"};
}

void Window::wait_for_input(double seconds) {
  if (seconds > 0)
    glfwWaitEventsTimeout(seconds);
  else
    glfwPollEvents();
}

bool Window::should_close() const { return glfwWindowShouldClose(window_) == GLFW_TRUE; }
void Window::close() { glfwSetWindowShouldClose(window_, GLFW_TRUE); }

bool Window::minimized() const {
  int width = 0, height = 0;
  glfwGetFramebufferSize(window_, &width, &height);
  return width == 0 || height == 0 || glfwGetWindowAttrib(window_, GLFW_ICONIFIED) == GLFW_TRUE;
}

float Window::density() {
  if (scale_ > 0) return scale_;
  if (std::exchange(rescale_, false) || std::exchange(monitors_changed, false))
    density_ = window_scale(window_);
  return density_;
}

bool Window::drawn_by_cpu() const { return device_->caps().type == DeviceType::kCpu; }

std::vector<std::string> Window::take_dropped_files() { return std::exchange(dropped_, {}); }

std::vector<std::string> Window::take_validation_messages() {
  return device_->instance().take_validation_messages();
}

void Window::begin_frame() {
  if (imgui_vulkan_) ImGui_ImplVulkan_NewFrame();
  ImGui_ImplGlfw_NewFrame();
}

Status Window::show(const std::optional<std::filesystem::path>& screenshot) {
  const VulkanTable& vk = device_->vk();
  if (stale_) HEARTH_TRY(make_swapchain());
  const uint64_t hash = frame_hash();
  if (hash == shown_ && !exposed_ && !screenshot) return {};
  std::unique_ptr<Screenshot> picture;
  if (screenshot) {
    HEARTH_ASSIGN(picture, Screenshot::create(*device_, *swapchain_));
  }
  Frame& frame = frames_[frame_];
  // The canvas must not change while an earlier frame is copied from it.
  for (const Frame& each : frames_)
    if (&each == &frame || canvas_) HEARTH_TRY(wait_for(each));

  uint32_t image = 0;
  VkResult result = vk.vkAcquireNextImageKHR(device_->handle(), swapchain_->handle(), kForever,
                                             frame.acquired, VK_NULL_HANDLE, &image);
  if (result == VK_ERROR_OUT_OF_DATE_KHR) {
    // The window was just resized; the next frame uses the new size.
    stale_ = true;
    return {};
  }
  stale_ = result == VK_SUBOPTIMAL_KHR;
  if (!stale_) HEARTH_TRY(check_vulkan(result, "acquiring the window's next image"));
  HEARTH_TRY(draw(frame, image, picture.get()));
  shown_ = hash;
  exposed_ = false;

  const VkSwapchainKHR swapchain = swapchain_->handle();
  const VkPresentInfoKHR present{.sType = VK_STRUCTURE_TYPE_PRESENT_INFO_KHR,
                                 .waitSemaphoreCount = 1,
                                 .pWaitSemaphores = &swapchain_->images()[image].drawn,
                                 .swapchainCount = 1,
                                 .pSwapchains = &swapchain,
                                 .pImageIndices = &image};
  result = vk.vkQueuePresentKHR(device_->queue(), &present);
  if (result == VK_ERROR_OUT_OF_DATE_KHR || result == VK_SUBOPTIMAL_KHR)
    stale_ = true;
  else
    HEARTH_TRY(check_vulkan(result, "presenting a frame"));
  frame_ = (frame_ + 1) % frames_.size();
  if (!picture) return {};
  HEARTH_TRY(wait_for(frame));
  return picture->write(*screenshot);
}

Status Window::wait_for(const Frame& frame) const {
  return check_vulkan(
      device_->vk().vkWaitForFences(device_->handle(), 1, &frame.done, VK_TRUE, kForever),
      "waiting for a frame");
}

uint64_t Window::frame_hash() const {
  const ImDrawData& data = *ImGui::GetDrawData();
  const ImVec4 background = ImGui::GetStyle().Colors[ImGuiCol_WindowBg];
  uint64_t hash = paint_hash(&background, sizeof background, 1);
  for (const ImDrawList* list : data.CmdLists) {
    hash = paint_hash(list->VtxBuffer.Data, static_cast<size_t>(list->VtxBuffer.size_in_bytes()),
                      hash);
    hash = paint_hash(list->IdxBuffer.Data, static_cast<size_t>(list->IdxBuffer.size_in_bytes()),
                      hash);
    for (const ImDrawCmd& command : list->CmdBuffer)
      hash = paint_hash(&command.ClipRect, sizeof command.ClipRect, hash + command.ElemCount);
  }
  return hash;
}

Status Window::draw(Frame& frame, uint32_t image, const Screenshot* screenshot) {
  const VulkanTable& vk = device_->vk();
  const Swapchain::Image& target = swapchain_->images()[image];
  HEARTH_TRY(
      check_vulkan(vk.vkResetFences(device_->handle(), 1, &frame.done), "resetting a fence"));
  HEARTH_TRY(check_vulkan(vk.vkResetCommandPool(device_->handle(), frame.pool, 0),
                          "resetting a command pool"));
  const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                       .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  HEARTH_TRY(check_vulkan(vk.vkBeginCommandBuffer(frame.commands, &begin), "recording a frame"));
  if (canvas_)
    draw_on_host(frame.commands, target);
  else
    draw_with_vulkan(frame.commands, target);
  VkImageLayout layout =
      canvas_ ? VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL : VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL;
  if (screenshot != nullptr) {
    change_layout(frame.commands, target.image, layout, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
    layout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL;
    screenshot->record(frame.commands, target.image);
  }
  change_layout(frame.commands, target.image, layout, VK_IMAGE_LAYOUT_PRESENT_SRC_KHR);
  HEARTH_TRY(check_vulkan(vk.vkEndCommandBuffer(frame.commands), "recording a frame"));

  const VkSemaphoreSubmitInfo acquired{
      .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
      .semaphore = frame.acquired,
      .stageMask = VK_PIPELINE_STAGE_2_COLOR_ATTACHMENT_OUTPUT_BIT | VK_PIPELINE_STAGE_2_COPY_BIT};
  const VkSemaphoreSubmitInfo drawn{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                                    .semaphore = target.drawn,
                                    .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT};
  const VkCommandBufferSubmitInfo commands{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO,
                                           .commandBuffer = frame.commands};
  const VkSubmitInfo2 submit{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
                             .waitSemaphoreInfoCount = 1,
                             .pWaitSemaphoreInfos = &acquired,
                             .commandBufferInfoCount = 1,
                             .pCommandBufferInfos = &commands,
                             .signalSemaphoreInfoCount = 1,
                             .pSignalSemaphoreInfos = &drawn};
  return check_vulkan(vk.vkQueueSubmit2(device_->queue(), 1, &submit, frame.done),
                      "submitting a frame");
}

// One barrier serves drawing, copying and presenting, since all of them run on one queue.
void Window::draw_with_vulkan(VkCommandBuffer commands, const Swapchain::Image& target) {
  const VulkanTable& vk = device_->vk();
  change_layout(commands, target.image, VK_IMAGE_LAYOUT_UNDEFINED,
                VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL);
  const ImVec4 background = ImGui::GetStyle().Colors[ImGuiCol_WindowBg];
  const VkRenderingAttachmentInfo attachment{
      .sType = VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO,
      .imageView = target.view,
      .imageLayout = VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL,
      .loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR,
      .storeOp = VK_ATTACHMENT_STORE_OP_STORE,
      .clearValue = {.color = {.float32 = {background.x, background.y, background.z, 1}}}};
  const VkRenderingInfo rendering{.sType = VK_STRUCTURE_TYPE_RENDERING_INFO,
                                  .renderArea = {.extent = swapchain_->extent()},
                                  .layerCount = 1,
                                  .colorAttachmentCount = 1,
                                  .pColorAttachments = &attachment};
  vk.vkCmdBeginRendering(commands, &rendering);
  ImGui_ImplVulkan_RenderDrawData(ImGui::GetDrawData(), commands);
  vk.vkCmdEndRendering(commands);
}

void Window::draw_on_host(VkCommandBuffer commands, const Swapchain::Image& target) {
  canvas_->paint(*ImGui::GetDrawData(), ImGui::GetColorU32(ImGuiCol_WindowBg));
  change_layout(commands, target.image, VK_IMAGE_LAYOUT_UNDEFINED,
                VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
  canvas_->record(commands, target.image);
}

void Window::change_layout(VkCommandBuffer commands, VkImage image, VkImageLayout from,
                           VkImageLayout to) {
  constexpr VkPipelineStageFlags2 kStages =
      VK_PIPELINE_STAGE_2_COLOR_ATTACHMENT_OUTPUT_BIT | VK_PIPELINE_STAGE_2_COPY_BIT;
  const VkImageMemoryBarrier2 barrier{
      .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER_2,
      .srcStageMask = kStages,
      .srcAccessMask = VK_ACCESS_2_COLOR_ATTACHMENT_WRITE_BIT | VK_ACCESS_2_TRANSFER_WRITE_BIT,
      .dstStageMask = kStages,
      .dstAccessMask = VK_ACCESS_2_COLOR_ATTACHMENT_WRITE_BIT |
                       VK_ACCESS_2_COLOR_ATTACHMENT_READ_BIT | VK_ACCESS_2_TRANSFER_READ_BIT |
                       VK_ACCESS_2_TRANSFER_WRITE_BIT,
      .oldLayout = from,
      .newLayout = to,
      .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
      .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
      .image = image,
      .subresourceRange = {
          .aspectMask = VK_IMAGE_ASPECT_COLOR_BIT, .levelCount = 1, .layerCount = 1}};
  const VkDependencyInfo dependency{.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                    .imageMemoryBarrierCount = 1,
                                    .pImageMemoryBarriers = &barrier};
  device_->vk().vkCmdPipelineBarrier2(commands, &dependency);
}

Window::~Window() {
  if (device_ && device_->handle() != VK_NULL_HANDLE) {
    const VulkanTable& vk = device_->vk();
    vk.vkDeviceWaitIdle(device_->handle());
    if (imgui_vulkan_) ImGui_ImplVulkan_Shutdown();
    for (const Frame& frame : frames_) {
      if (frame.pool != VK_NULL_HANDLE)
        vk.vkDestroyCommandPool(device_->handle(), frame.pool, nullptr);
      if (frame.done != VK_NULL_HANDLE) vk.vkDestroyFence(device_->handle(), frame.done, nullptr);
      if (frame.acquired != VK_NULL_HANDLE)
        vk.vkDestroySemaphore(device_->handle(), frame.acquired, nullptr);
    }
  }
  canvas_.reset();
  swapchain_.reset();
  device_.reset();
  if (imgui_glfw_) ImGui_ImplGlfw_Shutdown();
  if (window_ != nullptr) glfwDestroyWindow(window_);
  if (started_) glfwTerminate();
}

}  // namespace hearth
