// The capabilities of a Vulkan device as plain data: read from a driver by device_query.cpp, or
// written by hand in tests. Device selection and kernel choice depend on nothing else.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

enum class DeviceType { kDiscrete, kIntegrated, kVirtual, kCpu, kOther };

std::string_view device_type_name(DeviceType type);  // "discrete"

// The drivers that Hearth knows by name; a GPU may have more than one.
enum class DriverId {
  kOther,
  kNvidia,  // NVIDIA's own
  kNvk,
  kRadv,
  kAmd,  // AMD's own, and AMDVLK
  kIntel,
  kIntelMesa,
  kMoltenVk,
  kLavapipe,
};

enum class ScalarType { kF16, kBf16, kF32, kS8, kU8, kS32, kU32, kOther };

std::string_view scalar_type_name(ScalarType type);  // "f16"

// A supported shape of cooperative matrices: D[m,n] = A[m,k] * B[k,n] + C[m,n].
struct CoopmatShape {
  uint32_t m = 0, n = 0, k = 0;
  ScalarType a = ScalarType::kOther, b = ScalarType::kOther;
  ScalarType c = ScalarType::kOther, result = ScalarType::kOther;
  bool operator==(const CoopmatShape&) const = default;
};

struct MemoryHeap {
  uint64_t bytes = 0;
  uint64_t free_bytes = 0;  // the driver's budget minus what is used; equal to bytes without
                            // VK_EXT_memory_budget
  bool device_local = false;
};

struct DeviceFeatures {
  // Required: Hearth does not run without these.
  bool subgroup_arithmetic = false;  // and shuffles, ballots, votes
  bool storage16 = false;
  bool int64 = false;  // addresses are computed in 64 bits
  bool timeline_semaphore = false;
  bool synchronization2 = false;
  bool buffer_device_address = false;
  bool subgroup_size_control = false;
  bool memory_model = false;
  // Writes become visible from one invocation to another through a third (common/fences.glsl).
  bool memory_model_chains = false;

  // Optional: used if supported.
  bool float16 = false;
  bool integer_dot = false;  // packed 4 x 8 bit, in hardware
  bool coopmat = false;      // VK_KHR_cooperative_matrix
  // Workgroups start in the order of their dispatches, so that a kernel may wait for an earlier one
  // (chain.h). Not a Vulkan feature: known for some drivers (chain_drivers.h) and then tested
  // (chain_check.h), or set by the environment.
  bool ordered_groups = false;
  // Lanes hold cooperative matrices as shaders/common/fragment_lanes.glsl describes. Not a Vulkan
  // feature either: check_fragments() finds out.
  bool lane_fragments = false;
  bool memory_budget = false;
  bool pipeline_executable = false;

  bool operator==(const DeviceFeatures&) const = default;
};

struct DeviceLimits {
  uint32_t max_group_invocations = 128;
  uint32_t max_shared_bytes = 16384;
  std::array<uint32_t, 3> max_group_count = {65535, 65535, 65535};
  uint64_t max_allocation_bytes = 1ull << 30;
  double timestamp_ns = 0;       // nanoseconds per GPU clock tick; 0: no timestamps
  uint32_t multiprocessors = 0;  // that run workgroups; 0: unknown
  // Of host memory that the device can use as a buffer (Memory::import_host()); 0: it cannot.
  uint64_t host_import_alignment = 0;
};

struct QueueFamilies {
  int compute = -1;   // index of the family that runs kernels; -1: none
  int transfer = -1;  // a family that only copies; -1: none
};

struct DeviceCaps {
  uint32_t index = 0;  // the argument of `-d`
  std::string name;
  DeviceType type = DeviceType::kOther;
  uint32_t vendor_id = 0, device_id = 0;
  DriverId driver_id = DriverId::kOther;
  std::string driver;  // name and version as reported by the driver
  uint32_t api_major = 0, api_minor = 0, api_patch = 0;
  std::array<uint8_t, 16> pipeline_cache_uuid = {};
  std::array<uint8_t, 16> device_uuid = {};  // of the card, the same in every process

  // The subgroup size that a pipeline gets by default, and the range it may require.
  uint32_t subgroup_size = 0, min_subgroup_size = 0, max_subgroup_size = 0;

  DeviceFeatures features;
  DeviceLimits limits;
  QueueFamilies queues;
  std::vector<MemoryHeap> heaps;
  std::vector<CoopmatShape> coopmat_shapes;

  // Memory that kernels read at full speed: the sum over device-local heaps.
  uint64_t memory_bytes() const;
  uint64_t free_bytes() const;
  // The host and the device share one memory, so no staging is needed.
  bool unified_memory() const;
};

// The names that `hearth devices` shows for the supported features, in the order of the struct.
std::vector<std::string> feature_names(const DeviceFeatures& features);

}  // namespace hearth
