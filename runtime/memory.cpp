#include "runtime/memory.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "runtime/device.h"
#include "runtime/instance.h"
#include "runtime/vulkan_private.h"
// After volk, which includes Vulkan without prototypes.
#include <vk_mem_alloc.h>

namespace hearth {
namespace {

bool lives_on_device(MemoryIntent intent) {
  return intent != MemoryIntent::kUpload && intent != MemoryIntent::kReadback;
}

VmaAllocationCreateInfo placement(MemoryIntent intent, bool host_writes, bool unified) {
  VmaAllocationCreateInfo info{};
  switch (intent) {
    case MemoryIntent::kWeights:
    case MemoryIntent::kKv:
    case MemoryIntent::kActivations:
      info.usage = VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE;
      info.flags = VMA_ALLOCATION_CREATE_WITHIN_BUDGET_BIT;
      // If the host and the device share memory, a mapping saves a copy.
      if (unified)
        info.flags |=
            VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT | VMA_ALLOCATION_CREATE_MAPPED_BIT;
      else if (host_writes)
        info.flags |= VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT |
                      VMA_ALLOCATION_CREATE_MAPPED_BIT;
      break;
    case MemoryIntent::kUpload:
      info.usage = VMA_MEMORY_USAGE_AUTO_PREFER_HOST;
      info.flags =
          VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT | VMA_ALLOCATION_CREATE_MAPPED_BIT;
      break;
    case MemoryIntent::kReadback:
      info.usage = VMA_MEMORY_USAGE_AUTO_PREFER_HOST;
      info.flags = VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT | VMA_ALLOCATION_CREATE_MAPPED_BIT;
      break;
  }
  return info;
}

}  // namespace

std::string_view intent_name(MemoryIntent intent) {
  switch (intent) {
    case MemoryIntent::kWeights:
      return "weights";
    case MemoryIntent::kKv:
      return "kv";
    case MemoryIntent::kActivations:
      return "activations";
    case MemoryIntent::kUpload:
      return "upload";
    case MemoryIntent::kReadback:
      break;
  }
  return "readback";
}

std::string format_bytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  if (bytes < (1ull << 20)) return fmt::format("{:.0f} KiB", static_cast<double>(bytes) / 1024);
  if (bytes < (1ull << 30))
    return fmt::format("{:.0f} MiB", static_cast<double>(bytes) / (1 << 20));
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30));
}

Result<std::unique_ptr<Memory>> Memory::create(Device& device) {
  std::unique_ptr<Memory> memory(new Memory(device));
  const VmaVulkanFunctions functions{.vkGetInstanceProcAddr = vkGetInstanceProcAddr,
                                     .vkGetDeviceProcAddr = vkGetDeviceProcAddr};
  VmaAllocatorCreateInfo info{};
  info.flags = VMA_ALLOCATOR_CREATE_BUFFER_DEVICE_ADDRESS_BIT;
  if (device.caps().features.memory_budget)
    info.flags |= VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT;
  info.physicalDevice = device.physical();
  info.device = device.handle();
  info.instance = device.instance().handle();
  info.pVulkanFunctions = &functions;
  info.vulkanApiVersion = VK_API_VERSION_1_3;
  const VkResult result = vmaCreateAllocator(&info, &memory->allocator_);
  if (result != VK_SUCCESS) return device.error_from(result, "starting the memory allocator");
  return memory;
}

Memory::~Memory() {
  if (allocator_ != nullptr) vmaDestroyAllocator(allocator_);
}

Error Memory::refused(const BufferInfo& info, std::string_view why) const {
  const MemoryUse now = use();
  return {ErrorKind::kOutOfMemory,
          fmt::format("cannot allocate {} for {} '{}': {}; {} of {} are free on {}",
                      format_bytes(info.bytes), intent_name(info.intent), info.name, why,
                      format_bytes(now.device_left_bytes()), format_bytes(now.device_budget_bytes),
                      device_.caps().name)};
}

Result<Buffer> Memory::allocate(const BufferInfo& info) {
  if (device_.lost()) return device_.lost_error();
  if (info.bytes == 0)
    return Error{ErrorKind::kInvalid, fmt::format("cannot allocate 0 bytes for '{}'", info.name)};
  const uint64_t limit = device_.caps().limits.max_allocation_bytes;
  if (info.bytes > limit)
    return refused(
        info, fmt::format("this device allows at most {} per allocation", format_bytes(limit)));
  if (device_.faults().allocation.should_fail())
    return refused(info, "a test injected this failure");
  // The allocator asks the driver as well, but a driver may not count memory that has not been
  // touched yet.
  if (lives_on_device(info.intent) && info.bytes > use().device_left_bytes())
    return refused(info, "that is more than the device has free");

  // Both queues may access any buffer. Concurrent sharing costs nothing for buffers on the drivers
  // we know, and saves ownership transfers.
  const uint32_t families[] = {static_cast<uint32_t>(device_.caps().queues.compute),
                               static_cast<uint32_t>(device_.caps().queues.transfer)};
  const bool shared = device_.has_transfer_queue();
  const VkBufferCreateInfo buffer_info{
      .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
      .size = info.bytes,
      .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
               VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
               VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT,
      .sharingMode = shared ? VK_SHARING_MODE_CONCURRENT : VK_SHARING_MODE_EXCLUSIVE,
      .queueFamilyIndexCount = shared ? 2u : 0u,
      .pQueueFamilyIndices = families,
  };
  const VmaAllocationCreateInfo where =
      placement(info.intent, info.host_writes, device_.caps().unified_memory());

  Buffer buffer;
  VmaAllocationInfo allocated{};
  constexpr VkDeviceSize kAlignment = 256;
  const VkResult result =
      vmaCreateBufferWithAlignment(allocator_, &buffer_info, &where, kAlignment, &buffer.handle_,
                                   &buffer.allocation_, &allocated);
  if (result == VK_ERROR_DEVICE_LOST) return device_.error_from(result, "allocating memory");
  if (result != VK_SUCCESS) return refused(info, vulkan_result_name(result));

  buffer.memory_ = this;
  buffer.bytes_ = info.bytes;
  buffer.intent_ = info.intent;
  buffer.mapped_ = static_cast<std::byte*>(allocated.pMappedData);
  const VkBufferDeviceAddressInfo address{.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                          .buffer = buffer.handle_};
  buffer.address_ = vkGetBufferDeviceAddress(device_.handle(), &address);

  const std::string name(info.name);
  vmaSetAllocationName(allocator_, buffer.allocation_, name.c_str());
  device_.set_name(VK_OBJECT_TYPE_BUFFER, buffer.handle_, name);

  const std::lock_guard lock(mutex_);
  IntentUse& use = use_[static_cast<size_t>(info.intent)];
  use.bytes += info.bytes;
  use.buffers += 1;
  use.peak_bytes = std::max(use.peak_bytes, use.bytes);
  return buffer;
}

Result<Buffer> Memory::import_host(std::span<std::byte> memory, std::string_view name) {
  if (device_.lost()) return device_.lost_error();
  const auto cannot = [&](std::string_view why) {
    return Error{ErrorKind::kUnsupported, fmt::format("{} cannot use host memory for '{}': {}",
                                                      device_.caps().name, name, why)};
  };
  const uint64_t alignment = device_.caps().limits.host_import_alignment;
  if (alignment == 0) return cannot("it has no VK_EXT_external_memory_host");
  assert(reinterpret_cast<uintptr_t>(memory.data()) % alignment == 0 &&
         memory.size() % alignment == 0);
  if (device_.faults().allocation.should_fail()) return cannot("a test injected this failure");

  constexpr auto kHandle = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
  VkMemoryHostPointerPropertiesEXT pointer{
      .sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  VkResult result =
      vkGetMemoryHostPointerPropertiesEXT(device_.handle(), kHandle, memory.data(), &pointer);
  if (result != VK_SUCCESS) return cannot(vulkan_result_name(result));

  const uint32_t families[] = {static_cast<uint32_t>(device_.caps().queues.compute),
                               static_cast<uint32_t>(device_.caps().queues.transfer)};
  const bool shared = device_.has_transfer_queue();
  const VkExternalMemoryBufferCreateInfo external{
      .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = kHandle};
  const VkBufferCreateInfo buffer_info{
      .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
      .pNext = &external,
      .size = memory.size(),
      .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
      .sharingMode = shared ? VK_SHARING_MODE_CONCURRENT : VK_SHARING_MODE_EXCLUSIVE,
      .queueFamilyIndexCount = shared ? 2u : 0u,
      .pQueueFamilyIndices = families,
  };
  Buffer buffer;
  result = vkCreateBuffer(device_.handle(), &buffer_info, nullptr, &buffer.handle_);
  if (result != VK_SUCCESS) return cannot(vulkan_result_name(result));
  const auto give_up = [&](std::string_view why) {
    vkDestroyBuffer(device_.handle(), buffer.handle_, nullptr);
    buffer.handle_ = nullptr;
    if (buffer.imported_ != nullptr) vkFreeMemory(device_.handle(), buffer.imported_, nullptr);
    buffer.imported_ = nullptr;
    return cannot(why);
  };

  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(device_.handle(), buffer.handle_, &needs);
  if (needs.size > memory.size()) return give_up("the buffer would be larger than the memory");
  const VkPhysicalDeviceMemoryProperties* properties = nullptr;
  vmaGetMemoryProperties(allocator_, &properties);
  constexpr VkMemoryPropertyFlags kWanted =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const uint32_t allowed = pointer.memoryTypeBits & needs.memoryTypeBits;
  uint32_t type = 0;
  while (type < properties->memoryTypeCount &&
         ((allowed >> type & 1) == 0 ||
          (properties->memoryTypes[type].propertyFlags & kWanted) != kWanted))
    ++type;
  if (type == properties->memoryTypeCount) return give_up("no coherent type of memory fits");

  const VkImportMemoryHostPointerInfoEXT import{
      .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
      .handleType = kHandle,
      .pHostPointer = memory.data()};
  const VkMemoryAllocateInfo allocation{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                        .pNext = &import,
                                        .allocationSize = memory.size(),
                                        .memoryTypeIndex = type};
  result = vkAllocateMemory(device_.handle(), &allocation, nullptr, &buffer.imported_);
  if (result != VK_SUCCESS) return give_up(vulkan_result_name(result));
  result = vkBindBufferMemory(device_.handle(), buffer.handle_, buffer.imported_, 0);
  if (result != VK_SUCCESS) return give_up(vulkan_result_name(result));

  buffer.memory_ = this;
  buffer.bytes_ = memory.size();
  buffer.intent_ = MemoryIntent::kReadback;
  buffer.mapped_ = memory.data();
  device_.set_name(VK_OBJECT_TYPE_BUFFER, buffer.handle_, name);

  const std::lock_guard lock(mutex_);
  IntentUse& use = use_[static_cast<size_t>(buffer.intent_)];
  use.bytes += buffer.bytes_;
  use.buffers += 1;
  use.peak_bytes = std::max(use.peak_bytes, use.bytes);
  return buffer;
}

void Memory::free(Buffer& buffer) {
  {
    const std::lock_guard lock(mutex_);
    IntentUse& use = use_[static_cast<size_t>(buffer.intent_)];
    use.bytes -= buffer.bytes_;
    use.buffers -= 1;
  }
  if (buffer.imported_ != nullptr) {
    vkDestroyBuffer(device_.handle(), buffer.handle_, nullptr);
    vkFreeMemory(device_.handle(), buffer.imported_, nullptr);
  } else {
    vmaDestroyBuffer(allocator_, buffer.handle_, buffer.allocation_);
  }
  buffer.handle_ = nullptr;
  buffer.allocation_ = nullptr;
  buffer.imported_ = nullptr;
}

Status Memory::flush(const Buffer& buffer) {
  if (buffer.imported_ != nullptr) return {};  // it is coherent
  const VkResult result = vmaFlushAllocation(allocator_, buffer.allocation_, 0, VK_WHOLE_SIZE);
  if (result != VK_SUCCESS) return device_.error_from(result, "flushing host writes");
  return {};
}

Status Memory::invalidate(const Buffer& buffer) {
  if (buffer.imported_ != nullptr) return {};
  const VkResult result = vmaInvalidateAllocation(allocator_, buffer.allocation_, 0, VK_WHOLE_SIZE);
  if (result != VK_SUCCESS) return device_.error_from(result, "reading back device writes");
  return {};
}

MemoryUse Memory::use() const {
  MemoryUse result;
  {
    const std::lock_guard lock(mutex_);
    result.by_intent = use_;
  }
  VmaBudget budgets[VK_MAX_MEMORY_HEAPS];
  vmaGetHeapBudgets(allocator_, budgets);
  const VkPhysicalDeviceMemoryProperties* properties = nullptr;
  vmaGetMemoryProperties(allocator_, &properties);
  for (uint32_t i = 0; i < properties->memoryHeapCount; ++i) {
    if ((properties->memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) == 0) continue;
    result.device_budget_bytes += budgets[i].budget;
    result.device_used_bytes += budgets[i].usage;
  }
  uint64_t counted = 0;
  for (size_t i = 0; i < kMemoryIntents; ++i)
    if (lives_on_device(static_cast<MemoryIntent>(i))) counted += result.by_intent[i].bytes;
  result.device_used_bytes = std::max(result.device_used_bytes, counted);
  return result;
}

}  // namespace hearth
