#include "runtime/device_select.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hearth {
namespace {

int type_rank(DeviceType type) {
  switch (type) {
    case DeviceType::kDiscrete:
      return 0;
    case DeviceType::kVirtual:
      return 1;
    case DeviceType::kIntegrated:
      return 2;
    case DeviceType::kOther:
      return 3;
    case DeviceType::kCpu:
      break;
  }
  return 4;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::optional<uint32_t> as_index(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string list_of(std::span<const DeviceCaps> devices) {
  std::vector<std::string> names;
  for (const DeviceCaps& caps : devices)
    names.push_back(fmt::format("{}: {}", caps.index, caps.name));
  return fmt::format("{}", fmt::join(names, "; "));
}

// The devices that `wanted` may refer to. An index matches one device; a text may match several.
std::vector<size_t> matches(std::span<const DeviceCaps> devices, std::string_view wanted) {
  std::vector<size_t> found;
  const std::optional<uint32_t> index = as_index(wanted);
  const std::string part = lower(wanted);
  for (size_t i = 0; i < devices.size(); ++i) {
    const bool fits =
        index ? devices[i].index == *index : lower(devices[i].name).find(part) != std::string::npos;
    if (fits) found.push_back(i);
  }
  return found;
}

}  // namespace

std::optional<std::string> refusal(const DeviceCaps& caps) {
  std::vector<std::string> missing;
  if (std::tie(caps.api_major, caps.api_minor) < std::make_tuple(1u, 3u))
    missing.push_back(fmt::format("Vulkan 1.3 (it has {}.{})", caps.api_major, caps.api_minor));
  if (caps.queues.compute < 0) missing.emplace_back("a compute queue");
  const DeviceFeatures& f = caps.features;
  if (!f.subgroup_arithmetic)
    missing.emplace_back("subgroup arithmetic, shuffles, ballots and votes in compute shaders");
  if (!f.storage16) missing.emplace_back("16-bit storage");
  if (!f.int64) missing.emplace_back("64-bit integers");
  if (!f.timeline_semaphore) missing.emplace_back("timeline semaphores");
  if (!f.synchronization2) missing.emplace_back("synchronization2");
  if (!f.buffer_device_address) missing.emplace_back("buffer device addresses");
  if (!f.subgroup_size_control) missing.emplace_back("subgroup size control");
  if (!f.memory_model) missing.emplace_back("the Vulkan memory model");
  if (!f.memory_model_chains)
    missing.emplace_back("availability and visibility chains of the Vulkan memory model");
  if (caps.subgroup_size < 4 || caps.subgroup_size > 64)
    missing.push_back(fmt::format("a subgroup size from 4 to 64 (it has {})", caps.subgroup_size));
  if (missing.empty()) return std::nullopt;
  return fmt::format("lacks {}", fmt::join(missing, ", "));
}

Result<size_t> select_device(std::span<const DeviceCaps> devices, std::string_view wanted) {
  if (devices.empty())
    return Error{
        ErrorKind::kNotFound,
        "no Vulkan device found: install a Vulkan driver for your GPU, or start Hearth with "
        "tools/start, which can also use the CPU"};

  const std::vector<size_t> candidates = matches(devices, wanted);
  if (candidates.empty())
    return Error{ErrorKind::kNotFound, fmt::format("no device matches '{}'; available devices: {}",
                                                   wanted, list_of(devices))};

  std::optional<size_t> best;
  std::vector<std::string> refusals;
  const auto rank = [&](size_t i) {
    // Lower is better, so that equal devices are ordered by their indices.
    return std::make_tuple(type_rank(devices[i].type), ~devices[i].memory_bytes(),
                           devices[i].index);
  };
  for (const size_t i : candidates) {
    if (const auto reason = refusal(devices[i]))
      refusals.push_back(fmt::format("{}: {} {}", devices[i].index, devices[i].name, *reason));
    else if (!best || rank(i) < rank(*best))
      best = i;
  }
  if (!best)
    return Error{ErrorKind::kUnsupported,
                 fmt::format("no usable device: {}", fmt::join(refusals, "; "))};
  return *best;
}

}  // namespace hearth
