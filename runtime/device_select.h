// Which device to run on: a pure function of what the devices can do and what the user asked for.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device_caps.h"
#include "runtime/result.h"

namespace hearth {

// Why Hearth cannot run on the device, or nothing if it can. Names every missing thing.
std::optional<std::string> refusal(const DeviceCaps& caps);

// The position in `devices` of the one to use.
// `wanted` is empty, an index as `hearth devices` prints it, or part of a name in any case. Without
// a wish: discrete before virtual before integrated before other before CPU, then more memory, then
// the lower index.
// The error lists each device with the reason it was refused, or the names that were there.
Result<size_t> select_device(std::span<const DeviceCaps> devices, std::string_view wanted);

}  // namespace hearth
