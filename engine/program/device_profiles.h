// Capabilities of devices that plans are made for without having them: `hearth bench --explain
// --device-profile NAME`, and golden files. Plain data, as the drivers report it. Only what kernel
// choice depends on is set.
#pragma once

#include <span>
#include <string_view>

#include "runtime/device_caps.h"
#include "runtime/result.h"

namespace hearth {

struct DeviceProfile {
  std::string_view name;  // as --device-profile takes it
  DeviceCaps caps;
};

std::span<const DeviceProfile> device_profiles();

// The error lists the names.
Result<DeviceCaps> find_device_profile(std::string_view name);

}  // namespace hearth
