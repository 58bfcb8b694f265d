#include "runtime/command_recorder.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include <fmt/format.h>

#include "runtime/chain_guard.h"
#include "runtime/device.h"
#include "runtime/dispatch_log.h"
#include "runtime/gpu_timer.h"
#include "runtime/pipeline.h"
#include "runtime/queue.h"
#include "runtime/vulkan_private.h"

namespace hearth {
namespace {

constexpr uint32_t kAllStages = kStageCompute | kStageTransfer;

VkPipelineStageFlags2 vulkan_stages(uint32_t stages) {
  VkPipelineStageFlags2 result = 0;
  if ((stages & kStageCompute) != 0) result |= VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT;
  if ((stages & kStageTransfer) != 0) result |= VK_PIPELINE_STAGE_2_ALL_TRANSFER_BIT;
  return result;
}

VkAccessFlags2 vulkan_writes(uint32_t stages) {
  VkAccessFlags2 result = 0;
  if ((stages & kStageCompute) != 0) result |= VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT;
  if ((stages & kStageTransfer) != 0) result |= VK_ACCESS_2_TRANSFER_WRITE_BIT;
  return result;
}

VkAccessFlags2 vulkan_reads(uint32_t stages) {
  VkAccessFlags2 result = 0;
  if ((stages & kStageCompute) != 0) result |= VK_ACCESS_2_SHADER_STORAGE_READ_BIT;
  if ((stages & kStageTransfer) != 0) result |= VK_ACCESS_2_TRANSFER_READ_BIT;
  return result;
}

void record_barrier(VkCommandBuffer commands, const VkMemoryBarrier2& barrier) {
  const VkDependencyInfo info{.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                              .memoryBarrierCount = 1,
                              .pMemoryBarriers = &barrier};
  vkCmdPipelineBarrier2(commands, &info);
}

}  // namespace

CommandBuffer& CommandBuffer::operator=(CommandBuffer&& other) noexcept {
  if (this == &other) return *this;
  reset();
  device_ = std::exchange(other.device_, nullptr);
  pool_ = std::exchange(other.pool_, nullptr);
  handle_ = std::exchange(other.handle_, nullptr);
  dispatches_ = other.dispatches_;
  barriers_ = other.barriers_;
  return *this;
}

void CommandBuffer::reset() {
  if (pool_ != nullptr) vkDestroyCommandPool(device_->handle(), pool_, nullptr);
  pool_ = nullptr;
  handle_ = nullptr;
}

Result<CommandRecorder> CommandRecorder::begin(Device& device, const RecorderOptions& options) {
  if (device.lost()) return device.lost_error();
  Queue& queue = options.queue != nullptr ? *options.queue : device.compute();
  CommandRecorder recorder(&device, options);
  recorder.transfer_only_ = &queue != &device.compute();
  recorder.labels_ = device.names_objects();
  CommandBuffer& buffer = recorder.buffer_;
  buffer.device_ = &device;

  const VkCommandPoolCreateInfo pool_info{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex = queue.family()};
  VkResult result = vkCreateCommandPool(device.handle(), &pool_info, nullptr, &buffer.pool_);
  if (result != VK_SUCCESS) return device.error_from(result, "creating a command pool");
  const VkCommandBufferAllocateInfo buffer_info{
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
      .commandPool = buffer.pool_,
      .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
      .commandBufferCount = 1};
  result = vkAllocateCommandBuffers(device.handle(), &buffer_info, &buffer.handle_);
  if (result != VK_SUCCESS) return device.error_from(result, "creating a command buffer");
  device.set_name(VK_OBJECT_TYPE_COMMAND_POOL, buffer.pool_, options.name);
  device.set_name(VK_OBJECT_TYPE_COMMAND_BUFFER, buffer.handle_, options.name);

  const VkCommandBufferBeginInfo begin_info{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                            .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT};
  result = vkBeginCommandBuffer(buffer.handle_, &begin_info);
  if (result != VK_SUCCESS) return device.error_from(result, "beginning a command buffer");
  if (recorder.timer_ != nullptr) recorder.timer_->record_reset(buffer.handle_);
  const uint32_t any = recorder.transfer_only_ ? uint32_t{kStageTransfer} : kAllStages;
  recorder.barrier(any, any);
  recorder.covered_stages_ = any;
  buffer.barriers_ = 0;
  if (recorder.times(Timing::kWhole)) recorder.timer_->record_begin(buffer.handle_, options.name);
  if (options.guarded && device.chain().usable()) {
    recorder.chain_ = Chain(device.chain().address(), options.chained, options.large_dispatch);
    if (options.chained) {
      const BufferSlice links = device.chain().links();
      vkCmdFillBuffer(buffer.handle_, links.buffer->handle(), links.offset, links.bytes, 0);
      recorder.clearing_counts_ = true;
    }
  }
  return recorder;
}

void CommandRecorder::barrier(uint32_t after, uint32_t before) {
  if (std::exchange(clearing_counts_, false)) after |= kStageTransfer;
  record_barrier(buffer_.handle_, {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                                   .srcStageMask = vulkan_stages(after),
                                   .srcAccessMask = vulkan_writes(after),
                                   .dstStageMask = vulkan_stages(before),
                                   .dstAccessMask = vulkan_reads(before) | vulkan_writes(before)});
  ++buffer_.barriers_;
  chain_.restart();
}

bool CommandRecorder::check(std::span<const Access> accesses, std::string_view label) {
  const auto outside =
      std::ranges::find_if(accesses, [](const Access& access) { return !access.slice.is_valid(); });
  if (outside == accesses.end()) return true;
  const BufferSlice& slice = outside->slice;
  if (status_.ok())
    status_ = Error{
        ErrorKind::kInternal,
        fmt::format("'{}' was given {} bytes at offset {} of a buffer of {}", label, slice.bytes,
                    slice.offset, slice.buffer != nullptr ? slice.buffer->bytes() : 0)};
  return false;
}

void CommandRecorder::begin_command(std::span<const Access> accesses, std::string_view label,
                                    uint32_t stages, bool chains) {
  const bool conflict = hazards_.add(accesses);
  // A barrier covers only the kinds of work that follow it, so the first command of another kind
  // needs its own barrier, whatever it accesses.
  const bool uncovered = used_stages_ != 0 && (stages & ~covered_stages_) != 0;
  if (conflict && chains && !uncovered && !serial_ && chain_.can_start_link()) {
    chain_.start_link();
  } else if (conflict || uncovered || (serial_ && used_stages_ != 0) ||
             (chain_.is_waiting() && !chains)) {
    barrier(used_stages_, stages);
    covered_stages_ = stages;
    if (!conflict) {
      hazards_.clear();
      hazards_.add(accesses);
    }
  }
  used_stages_ |= stages;
  if (!labels_ && !times(Timing::kEachCommand)) return;
  std::string text(label);
  if (!section_.empty()) text = fmt::format("{}{}{}", section_, kSectionSeparator, label);
  if (labels_) {
    const VkDebugUtilsLabelEXT info{.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT,
                                    .pLabelName = text.c_str()};
    vkCmdBeginDebugUtilsLabelEXT(buffer_.handle_, &info);
  }
  if (times(Timing::kEachCommand)) timer_->record_begin(buffer_.handle_, text);
}

void CommandRecorder::end_command() {
  if (times(Timing::kEachCommand)) timer_->record_end(buffer_.handle_);
  if (labels_) vkCmdEndDebugUtilsLabelEXT(buffer_.handle_);
  ++buffer_.dispatches_;
}

void CommandRecorder::dispatch(const Dispatch& dispatch) {
  if (log_ != nullptr) log_->push_back({dispatch.pipeline.info(), dispatch.groups});
  const std::span<const Access> accesses = dispatch.arguments.accesses();
  if (!check(accesses, dispatch.pipeline.name()) || is_dry()) return;
  assert(!transfer_only_ && "kernels run on the compute queue");
  const bool chains = chain_.enabled() && dispatch.pipeline.chained() && !dispatch.lasting;
  begin_command(accesses, dispatch.label.empty() ? dispatch.pipeline.name() : dispatch.label,
                kStageCompute, chains);
  if (bound_ != dispatch.pipeline.handle()) {
    bound_ = dispatch.pipeline.handle();
    vkCmdBindPipeline(buffer_.handle_, VK_PIPELINE_BIND_POINT_COMPUTE, bound_);
  }
  std::array<std::byte, kPushBytes> bytes{};
  std::ranges::copy(dispatch.arguments.bytes(), bytes.begin());
  ChainPush push;
  if (chains) {
    push = chain_.add(dispatch.groups.x * dispatch.groups.y * dispatch.groups.z);
    if (push.wait > 0 && device_->faults().chain.should_fail()) ++push.wait;
  } else {
    push = chain_.add_unchained();
    if (dispatch.lasting) chain_.end();
  }
  std::memcpy(bytes.data() + kMaxPushBytes, &push, sizeof push);
  vkCmdPushConstants(buffer_.handle_, dispatch.pipeline.layout(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                     bytes.size(), bytes.data());
  vkCmdDispatch(buffer_.handle_, dispatch.groups.x, dispatch.groups.y, dispatch.groups.z);
  end_command();
}

void CommandRecorder::copy(const BufferSlice& from, const BufferSlice& to) {
  assert(from.bytes == to.bytes);
  const Access accesses[] = {reads(from), writes(to)};
  if (!check(accesses, "copy") || is_dry()) return;
  begin_command(accesses, "copy", kStageTransfer);
  chain_.add_unchained();
  const VkBufferCopy region{.srcOffset = from.offset, .dstOffset = to.offset, .size = from.bytes};
  vkCmdCopyBuffer(buffer_.handle_, from.buffer->handle(), to.buffer->handle(), 1, &region);
  end_command();
}

void CommandRecorder::fill(const BufferSlice& slice, uint32_t word) {
  const Access accesses[] = {writes(slice)};
  if (!check(accesses, "fill") || is_dry()) return;
  begin_command(accesses, "fill", kStageTransfer);
  chain_.add_unchained();
  vkCmdFillBuffer(buffer_.handle_, slice.buffer->handle(), slice.offset, slice.bytes, word);
  end_command();
}

Result<CommandBuffer> CommandRecorder::finish() {
  assert(!is_dry());
  if (!status_.ok()) return status_.error();
  if (times(Timing::kWhole)) timer_->record_end(buffer_.handle_);
  if (used_stages_ != 0)
    record_barrier(buffer_.handle_, {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                                     .srcStageMask = vulkan_stages(used_stages_),
                                     .srcAccessMask = vulkan_writes(used_stages_),
                                     .dstStageMask = VK_PIPELINE_STAGE_2_HOST_BIT,
                                     .dstAccessMask = VK_ACCESS_2_HOST_READ_BIT});
  const VkResult result = vkEndCommandBuffer(buffer_.handle_);
  if (result != VK_SUCCESS) return device_->error_from(result, "recording commands");
  return std::move(buffer_);
}

}  // namespace hearth
