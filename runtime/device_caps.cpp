#include "runtime/device_caps.h"

namespace hearth {
namespace {

struct NamedFeature {
  std::string_view name;
  bool DeviceFeatures::*flag;
};

constexpr NamedFeature kFeatures[] = {
    {"subgroup_arithmetic", &DeviceFeatures::subgroup_arithmetic},
    {"storage16", &DeviceFeatures::storage16},
    {"int64", &DeviceFeatures::int64},
    {"timeline_semaphore", &DeviceFeatures::timeline_semaphore},
    {"synchronization2", &DeviceFeatures::synchronization2},
    {"buffer_device_address", &DeviceFeatures::buffer_device_address},
    {"subgroup_size_control", &DeviceFeatures::subgroup_size_control},
    {"memory_model", &DeviceFeatures::memory_model},
    {"memory_model_chains", &DeviceFeatures::memory_model_chains},
    {"float16", &DeviceFeatures::float16},
    {"integer_dot", &DeviceFeatures::integer_dot},
    {"coopmat", &DeviceFeatures::coopmat},
    {"ordered_groups", &DeviceFeatures::ordered_groups},
    {"memory_budget", &DeviceFeatures::memory_budget},
    {"pipeline_executable", &DeviceFeatures::pipeline_executable},
};

}  // namespace

std::string_view device_type_name(DeviceType type) {
  switch (type) {
    case DeviceType::kDiscrete:
      return "discrete";
    case DeviceType::kIntegrated:
      return "integrated";
    case DeviceType::kVirtual:
      return "virtual";
    case DeviceType::kCpu:
      return "cpu";
    case DeviceType::kOther:
      break;
  }
  return "other";
}

std::string_view scalar_type_name(ScalarType type) {
  switch (type) {
    case ScalarType::kF16:
      return "f16";
    case ScalarType::kBf16:
      return "bf16";
    case ScalarType::kF32:
      return "f32";
    case ScalarType::kS8:
      return "s8";
    case ScalarType::kU8:
      return "u8";
    case ScalarType::kS32:
      return "s32";
    case ScalarType::kU32:
      return "u32";
    case ScalarType::kOther:
      break;
  }
  return "other";
}

uint64_t DeviceCaps::memory_bytes() const {
  uint64_t sum = 0;
  for (const MemoryHeap& heap : heaps)
    if (heap.device_local) sum += heap.bytes;
  return sum;
}

uint64_t DeviceCaps::free_bytes() const {
  uint64_t sum = 0;
  for (const MemoryHeap& heap : heaps)
    if (heap.device_local) sum += heap.free_bytes;
  return sum;
}

bool DeviceCaps::unified_memory() const {
  return type == DeviceType::kCpu || type == DeviceType::kIntegrated;
}

std::vector<std::string> feature_names(const DeviceFeatures& features) {
  std::vector<std::string> names;
  for (const NamedFeature& feature : kFeatures)
    if (features.*feature.flag) names.emplace_back(feature.name);
  return names;
}

}  // namespace hearth
