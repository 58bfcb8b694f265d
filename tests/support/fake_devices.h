// Capabilities of devices we do not have, for tables of kernel choices.
#pragma once

#include <utility>
#include <vector>

#include "runtime/device_caps.h"

namespace hearth::testing {

struct FakeDevice {
  const char* name;
  DeviceCaps caps;
  bool cpu() const { return caps.type == DeviceType::kCpu; }
};

inline FakeDevice fake_device(const char* name, DeviceType type, uint32_t subgroup,
                              uint32_t max_group_invocations, uint32_t max_shared_bytes) {
  DeviceCaps caps;
  caps.type = type;
  caps.subgroup_size = caps.min_subgroup_size = caps.max_subgroup_size = subgroup;
  caps.limits.max_group_invocations = max_group_invocations;
  caps.limits.max_shared_bytes = max_shared_bytes;
  return {name, caps};
}

// Products of f16 matrices with f32 sums; m and k are 16.
inline CoopmatShape half_fragments(uint32_t n = 16) {
  return {16, n, 16, ScalarType::kF16, ScalarType::kF16, ScalarType::kF32, ScalarType::kF32};
}

// The same device with matrix units.
inline DeviceCaps with_matrices(DeviceCaps caps,
                                std::vector<CoopmatShape> shapes = {half_fragments()}) {
  caps.features.coopmat = caps.features.float16 = true;
  caps.coopmat_shapes = std::move(shapes);
  return caps;
}

// Makes a device an H200 for the choice of a tuning profile (engine/ops/tuning).
inline DeviceCaps as_h200(DeviceCaps caps) {
  caps.vendor_id = 0x10de;
  caps.device_id = 0x2335;
  caps.driver_id = DriverId::kNvidia;
  return caps;
}

// The first one is an H200.
inline std::vector<FakeDevice> fake_devices() {
  return {
      {"nvidia", as_h200(fake_device("", DeviceType::kDiscrete, 32, 1024, 49152).caps)},
      fake_device("amd wave64", DeviceType::kDiscrete, 64, 1024, 65536),
      fake_device("amd wave32", DeviceType::kDiscrete, 32, 1024, 65536),
      fake_device("intel", DeviceType::kIntegrated, 16, 1024, 65536),
      fake_device("smallest", DeviceType::kDiscrete, 32, 128, 16384),
      fake_device("lavapipe 256", DeviceType::kCpu, 8, 1024, 32768),
      fake_device("lavapipe 128", DeviceType::kCpu, 4, 1024, 32768),
  };
}

}  // namespace hearth::testing
