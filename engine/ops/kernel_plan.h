// The result of kernel choice, and arithmetic that its functions share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/command_recorder.h"
#include "runtime/device_caps.h"
#include "runtime/pipeline.h"
#include "runtime/rounding.h"

namespace hearth {

struct KernelPlan {
  PipelineInfo pipeline;
  GroupCount groups;
};

// CPU-type devices get kernels of their own: no barriers, wide loads, one invocation per row.
inline bool is_cpu(const DeviceCaps& caps) { return caps.type == DeviceType::kCpu; }

// The number of multiprocessors. If the driver does not say, that of a large GPU.
inline uint32_t multiprocessors(const DeviceCaps& caps) {
  return caps.limits.multiprocessors > 0 ? caps.limits.multiprocessors : 128;
}

// The largest multiple of the subgroup size that is at most `wanted` and within the device's limit.
inline uint32_t group_size(const DeviceCaps& caps, uint32_t wanted) {
  const uint32_t most = std::min(wanted, caps.limits.max_group_invocations);
  return std::max(1u, most / caps.subgroup_size) * caps.subgroup_size;
}

}  // namespace hearth
