// Chooses a device: a pure function of the devices' capabilities and the user's wish.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device_caps.h"
#include "runtime/result.h"

namespace hearth {

// Why Hearth cannot run on the device, naming everything that is missing; nothing if it can.
std::optional<std::string> refusal(const DeviceCaps& caps);

// The index in `devices` of the one to use.
// `wanted` is empty, an index as printed by `hearth devices`, or part of a name, ignoring case. If
// several devices match: discrete before virtual before integrated before other before CPU, then
// more memory, then the lower index.
// The error lists every matching device with the reason it was refused, or the available names.
Result<size_t> select_device(std::span<const DeviceCaps> devices, std::string_view wanted);

}  // namespace hearth
