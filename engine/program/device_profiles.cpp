#include "engine/program/device_profiles.h"

#include <string>
#include <vector>

#include <fmt/format.h>

namespace hearth {
namespace {

constexpr uint32_t kNvidiaVendor = 0x10de, kAmdVendor = 0x1002, kIntelVendor = 0x8086,
                   kAppleVendor = 0x106b, kMesaVendor = 0x10005;

// f16 operands, with sums of the given type.
CoopmatShape half_products(uint32_t m, uint32_t n, uint32_t k, ScalarType sums) {
  return {m, n, k, ScalarType::kF16, ScalarType::kF16, sums, sums};
}

// What every device of the list has.
DeviceCaps basic_caps(std::string name, uint32_t vendor_id, uint32_t device_id, DriverId driver) {
  DeviceCaps caps;
  caps.name = std::move(name);
  caps.vendor_id = vendor_id;
  caps.device_id = device_id;
  caps.driver_id = driver;
  caps.type = DeviceType::kDiscrete;
  caps.limits.max_group_invocations = 1024;
  caps.limits.max_allocation_bytes = 4ull << 30;
  DeviceFeatures& features = caps.features;
  features.subgroup_arithmetic = features.storage16 = features.int64 = true;
  features.timeline_semaphore = features.synchronization2 = features.buffer_device_address = true;
  features.subgroup_size_control = features.memory_model = features.memory_model_chains = true;
  features.float16 = true;
  return caps;
}

void set_subgroups(DeviceCaps& caps, uint32_t usual, uint32_t least, uint32_t most) {
  caps.subgroup_size = usual;
  caps.min_subgroup_size = least;
  caps.max_subgroup_size = most;
}

// Matrix units whose fragment layout is known, and workgroups that start in order.
DeviceCaps nvidia(std::string name, uint32_t device_id, uint32_t multiprocessors) {
  DeviceCaps caps = basic_caps(std::move(name), kNvidiaVendor, device_id, DriverId::kNvidia);
  set_subgroups(caps, 32, 32, 32);
  caps.limits.max_shared_bytes = 48 * 1024;
  caps.limits.multiprocessors = multiprocessors;
  caps.features.integer_dot = caps.features.coopmat = true;
  caps.features.ordered_groups = caps.features.lane_fragments = true;
  for (const ScalarType sums : {ScalarType::kF32, ScalarType::kF16})
    for (const uint32_t n : {16u, 8u})
      caps.coopmat_shapes.push_back(half_products(16, n, 16, sums));
  return caps;
}

DeviceCaps rdna(std::string name, uint32_t device_id, bool matrices) {
  DeviceCaps caps = basic_caps(std::move(name), kAmdVendor, device_id, DriverId::kRadv);
  set_subgroups(caps, 64, 32, 64);
  caps.limits.max_shared_bytes = 64 * 1024;
  caps.features.integer_dot = true;
  caps.features.coopmat = matrices;
  if (matrices)
    for (const ScalarType sums : {ScalarType::kF32, ScalarType::kF16})
      caps.coopmat_shapes.push_back(half_products(16, 16, 16, sums));
  return caps;
}

DeviceCaps arc() {
  DeviceCaps caps = basic_caps("Intel(R) Arc(tm) A770 Graphics (DG2)", kIntelVendor, 0x56a0,
                               DriverId::kIntelMesa);
  set_subgroups(caps, 32, 8, 32);
  caps.limits.max_shared_bytes = 64 * 1024;
  caps.features.integer_dot = caps.features.coopmat = true;
  caps.coopmat_shapes.push_back(half_products(8, 8, 16, ScalarType::kF32));
  return caps;
}

DeviceCaps apple() {
  DeviceCaps caps = basic_caps("Apple M2 Max", kAppleVendor, 0x1a020209, DriverId::kMoltenVk);
  caps.type = DeviceType::kIntegrated;
  set_subgroups(caps, 32, 32, 32);
  caps.limits.max_shared_bytes = 32 * 1024;
  return caps;
}

DeviceCaps llvmpipe() {
  DeviceCaps caps = basic_caps("llvmpipe (LLVM 19, 256 bits)", kMesaVendor, 0, DriverId::kLavapipe);
  caps.type = DeviceType::kCpu;
  set_subgroups(caps, 8, 8, 8);
  caps.limits.max_shared_bytes = 32 * 1024;
  caps.limits.max_allocation_bytes = 2ull << 30;
  return caps;
}

}  // namespace

std::span<const DeviceProfile> device_profiles() {
  static const std::vector<DeviceProfile> kProfiles = {
      {"h200", nvidia("NVIDIA H200", 0x2335, 132)},
      {"rtx-4090", nvidia("NVIDIA GeForce RTX 4090", 0x2684, 128)},
      {"rdna3", rdna("AMD Radeon RX 7900 XTX (RADV NAVI31)", 0x744c, true)},
      {"rdna2", rdna("AMD Radeon RX 6800 XT (RADV NAVI21)", 0x73bf, false)},
      {"arc", arc()},
      {"apple", apple()},
      {"llvmpipe", llvmpipe()}};
  return kProfiles;
}

Result<DeviceCaps> find_device_profile(std::string_view name) {
  std::string names;
  for (const DeviceProfile& profile : device_profiles()) {
    if (profile.name == name) return profile.caps;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", profile.name);
  }
  return Error{ErrorKind::kInvalid,
               fmt::format("there is no device profile '{}'; there are {}", name, names)};
}

}  // namespace hearth
