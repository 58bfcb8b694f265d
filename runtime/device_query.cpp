#include "runtime/device_query.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "runtime/chain_drivers.h"

namespace hearth {
namespace {

constexpr const char* kUsefulExtensions[] = {
    VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME,
    VK_EXT_MEMORY_BUDGET_EXTENSION_NAME,
    VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME,
    VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME,
    VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME,
};

bool contains(const std::vector<const char*>& names, const char* name) {
  return std::any_of(names.begin(), names.end(),
                     [&](const char* other) { return std::strcmp(other, name) == 0; });
}

DeviceType device_type(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return DeviceType::kDiscrete;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return DeviceType::kIntegrated;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return DeviceType::kVirtual;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return DeviceType::kCpu;
    default:
      return DeviceType::kOther;
  }
}

DriverId driver_id(VkDriverId id) {
  switch (id) {
    case VK_DRIVER_ID_NVIDIA_PROPRIETARY:
      return DriverId::kNvidia;
    case VK_DRIVER_ID_MESA_NVK:
      return DriverId::kNvk;
    case VK_DRIVER_ID_MESA_RADV:
      return DriverId::kRadv;
    case VK_DRIVER_ID_AMD_PROPRIETARY:
    case VK_DRIVER_ID_AMD_OPEN_SOURCE:
      return DriverId::kAmd;
    case VK_DRIVER_ID_INTEL_PROPRIETARY_WINDOWS:
      return DriverId::kIntel;
    case VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA:
      return DriverId::kIntelMesa;
    case VK_DRIVER_ID_MOLTENVK:
      return DriverId::kMoltenVk;
    case VK_DRIVER_ID_MESA_LLVMPIPE:
      return DriverId::kLavapipe;
    default:
      return DriverId::kOther;
  }
}

ScalarType scalar_type(VkComponentTypeKHR type) {
  switch (type) {
    case VK_COMPONENT_TYPE_FLOAT16_KHR:
      return ScalarType::kF16;
    case VK_COMPONENT_TYPE_FLOAT32_KHR:
      return ScalarType::kF32;
    case VK_COMPONENT_TYPE_SINT8_KHR:
      return ScalarType::kS8;
    case VK_COMPONENT_TYPE_UINT8_KHR:
      return ScalarType::kU8;
    case VK_COMPONENT_TYPE_SINT32_KHR:
      return ScalarType::kS32;
    case VK_COMPONENT_TYPE_UINT32_KHR:
      return ScalarType::kU32;
#ifdef VK_KHR_shader_bfloat16
    case VK_COMPONENT_TYPE_BFLOAT16_KHR:
      return ScalarType::kBf16;
#endif
    default:
      return ScalarType::kOther;
  }
}

QueueFamilies find_queues(VkPhysicalDevice device) {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());

  QueueFamilies found;
  for (int i = 0; i < static_cast<int>(count); ++i) {
    const VkQueueFlags flags = families[static_cast<size_t>(i)].queueFlags;
    const bool compute = (flags & VK_QUEUE_COMPUTE_BIT) != 0;
    const bool graphics = (flags & VK_QUEUE_GRAPHICS_BIT) != 0;
    // The first family with compute: on most drivers the main queue, which has no slow start.
    if (compute && found.compute < 0) found.compute = i;
    if (!compute && !graphics && (flags & VK_QUEUE_TRANSFER_BIT) != 0 && found.transfer < 0)
      found.transfer = i;
  }
  return found;
}

std::vector<MemoryHeap> find_heaps(VkPhysicalDevice device, bool has_budget) {
  // A driver that pretends to have a device has no memory, and crashes if asked for its budget.
  VkPhysicalDeviceMemoryProperties heap_sizes;
  vkGetPhysicalDeviceMemoryProperties(device, &heap_sizes);
  if (heap_sizes.memoryHeapCount == 0) return {};
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
  VkPhysicalDeviceMemoryProperties2 memory{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
      .pNext = has_budget ? &budget : nullptr};
  vkGetPhysicalDeviceMemoryProperties2(device, &memory);

  std::vector<MemoryHeap> heaps;
  for (uint32_t i = 0; i < memory.memoryProperties.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = memory.memoryProperties.memoryHeaps[i];
    uint64_t free = heap.size;
    if (has_budget)
      free = budget.heapBudget[i] - std::min(budget.heapBudget[i], budget.heapUsage[i]);
    heaps.push_back({.bytes = heap.size,
                     .free_bytes = free,
                     .device_local = (heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0});
  }
  return heaps;
}

std::vector<CoopmatShape> find_coopmat_shapes(VkPhysicalDevice device) {
  uint32_t count = 0;
  vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(device, &count, nullptr);
  std::vector<VkCooperativeMatrixPropertiesKHR> properties(
      count, {.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR});
  vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(device, &count, properties.data());

  std::vector<CoopmatShape> shapes;
  for (const auto& p : properties) {
    if (p.scope != VK_SCOPE_SUBGROUP_KHR || p.saturatingAccumulation) continue;
    const CoopmatShape shape{.m = p.MSize,
                             .n = p.NSize,
                             .k = p.KSize,
                             .a = scalar_type(p.AType),
                             .b = scalar_type(p.BType),
                             .c = scalar_type(p.CType),
                             .result = scalar_type(p.ResultType)};
    if (shape.a != ScalarType::kOther && shape.result != ScalarType::kOther)
      shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace

std::vector<const char*> useful_extensions(VkPhysicalDevice device) {
  uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> available(count);
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, available.data());
  std::vector<const char*> useful;
  for (const char* name : kUsefulExtensions) {
    const bool found = std::any_of(available.begin(), available.end(), [&](const auto& extension) {
      return std::strcmp(extension.extensionName, name) == 0;
    });
    if (found) useful.push_back(name);
  }
  return useful;
}

FeatureChain::FeatureChain(const std::vector<const char*>& extensions) {
  core.pNext = &v11;
  v11.pNext = &v12;
  v12.pNext = &v13;
  void** next = &v13.pNext;
  const auto append = [&](auto& features, const char* extension) {
    if (!contains(extensions, extension)) return;
    *next = &features;
    next = &features.pNext;
  };
  append(coopmat, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
  append(executable, VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
}

void enable_features(const DeviceFeatures& features, FeatureChain& chain) {
  chain.core.features.shaderInt64 = features.int64;
  chain.v11.storageBuffer16BitAccess = features.storage16;
  chain.v12.timelineSemaphore = features.timeline_semaphore;
  chain.v12.bufferDeviceAddress = features.buffer_device_address;
  chain.v12.hostQueryReset = VK_TRUE;
  chain.v12.shaderFloat16 = features.float16;
  chain.v12.vulkanMemoryModel = features.memory_model;
  chain.v12.vulkanMemoryModelAvailabilityVisibilityChains = features.memory_model_chains;
  chain.v13.synchronization2 = features.synchronization2;
  chain.v13.subgroupSizeControl = features.subgroup_size_control;
  chain.v13.computeFullSubgroups = features.subgroup_size_control;
  chain.v13.maintenance4 = VK_TRUE;
  chain.v13.shaderIntegerDotProduct = VK_TRUE;
  chain.coopmat.cooperativeMatrix = features.coopmat;
  chain.executable.pipelineExecutableInfo = features.pipeline_executable;
}

// HEARTH_CHAIN=0 turns chains off. HEARTH_CHAIN=1 turns them on for any driver that passes the test
// of chain_check.h, for tests on devices that run one dispatch after the other anyway.
static bool starts_groups_in_order(const DeviceCaps& caps) {
  if (const char* wanted = std::getenv("HEARTH_CHAIN"); wanted != nullptr)
    return std::string_view(wanted) == "1";
  return may_chain(caps);
}

DeviceCaps query_device(VkPhysicalDevice device, uint32_t index) {
  const std::vector<const char*> extensions = useful_extensions(device);
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV sm{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host_memory{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
  VkPhysicalDeviceVulkan13Properties p13{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES};
  void** next = &p13.pNext;
  const auto append = [&](auto& more, const char* extension) {
    if (!contains(extensions, extension)) return;
    *next = &more;
    next = &more.pNext;
  };
  append(sm, VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME);
  append(host_memory, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  VkPhysicalDeviceVulkan12Properties p12{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES, .pNext = &p13};
  VkPhysicalDeviceVulkan11Properties p11{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES, .pNext = &p12};
  VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                         .pNext = &p11};
  vkGetPhysicalDeviceProperties2(device, &properties);
  const VkPhysicalDeviceProperties& core = properties.properties;

  FeatureChain chain(extensions);
  vkGetPhysicalDeviceFeatures2(device, &chain.core);

  DeviceCaps caps;
  caps.index = index;
  caps.name = core.deviceName;
  caps.type = device_type(core.deviceType);
  caps.vendor_id = core.vendorID;
  caps.device_id = core.deviceID;
  caps.driver_id = driver_id(p12.driverID);
  caps.driver = fmt::format("{} {}", p12.driverName, p12.driverInfo);
  caps.api_major = VK_API_VERSION_MAJOR(core.apiVersion);
  caps.api_minor = VK_API_VERSION_MINOR(core.apiVersion);
  caps.api_patch = VK_API_VERSION_PATCH(core.apiVersion);
  std::copy(std::begin(core.pipelineCacheUUID), std::end(core.pipelineCacheUUID),
            caps.pipeline_cache_uuid.begin());
  std::copy(std::begin(p11.deviceUUID), std::end(p11.deviceUUID), caps.device_uuid.begin());

  caps.subgroup_size = p11.subgroupSize;
  caps.min_subgroup_size = p13.minSubgroupSize;
  caps.max_subgroup_size = p13.maxSubgroupSize;
  constexpr VkSubgroupFeatureFlags kSubgroupOperations =
      VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT |
      VK_SUBGROUP_FEATURE_SHUFFLE_BIT | VK_SUBGROUP_FEATURE_BALLOT_BIT |
      VK_SUBGROUP_FEATURE_VOTE_BIT;

  DeviceFeatures& f = caps.features;
  f.subgroup_arithmetic =
      (p11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
      (p11.subgroupSupportedOperations & kSubgroupOperations) == kSubgroupOperations;
  f.storage16 = chain.v11.storageBuffer16BitAccess;
  f.int64 = chain.core.features.shaderInt64;
  f.timeline_semaphore = chain.v12.timelineSemaphore;
  f.synchronization2 = chain.v13.synchronization2;
  f.buffer_device_address = chain.v12.bufferDeviceAddress;
  f.subgroup_size_control = chain.v13.subgroupSizeControl && chain.v13.computeFullSubgroups &&
                            (p13.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  f.memory_model = chain.v12.vulkanMemoryModel;
  f.memory_model_chains = chain.v12.vulkanMemoryModelAvailabilityVisibilityChains;
  f.float16 = chain.v12.shaderFloat16;
  f.integer_dot = p13.integerDotProduct4x8BitPackedSignedAccelerated;
  f.ordered_groups = starts_groups_in_order(caps);
  f.coopmat = chain.coopmat.cooperativeMatrix;
  f.memory_budget = contains(extensions, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  f.pipeline_executable = chain.executable.pipelineExecutableInfo;

  DeviceLimits& limits = caps.limits;
  limits.max_group_invocations = core.limits.maxComputeWorkGroupInvocations;
  limits.max_shared_bytes = core.limits.maxComputeSharedMemorySize;
  for (size_t i = 0; i < 3; ++i)
    limits.max_group_count[i] = core.limits.maxComputeWorkGroupCount[i];
  // maxBufferSize limits the buffer, maxMemoryAllocationSize the memory under it.
  limits.max_allocation_bytes = std::min(p11.maxMemoryAllocationSize, p13.maxBufferSize);
  limits.multiprocessors = sm.shaderSMCount;
  limits.host_import_alignment = host_memory.minImportedHostPointerAlignment;
  limits.timestamp_ns =
      core.limits.timestampComputeAndGraphics ? double{core.limits.timestampPeriod} : 0.0;

  caps.queues = find_queues(device);
  caps.heaps = find_heaps(device, f.memory_budget);
  if (f.coopmat) caps.coopmat_shapes = find_coopmat_shapes(device);
  return caps;
}

}  // namespace hearth
