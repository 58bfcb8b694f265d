// Drivers for CPUs compile a kernel when it first runs, on the device's queue, where steps would
// wait for it. This makes them do so while no step runs. For one thread at a time.
#pragma once

#include <chrono>
#include <cstdint>

#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

class Device;

class KernelWarmUp {
 public:
  explicit KernelWarmUp(Device& device) : device_(device) {}

  // Makes the driver compile the pipeline. Returns false, and does nothing, if the device is busy
  // or was so within the last kQuiet: try again later.
  Result<bool> run_if_idle(const Pipeline& pipeline);

  // Longer than the host takes between two steps.
  static constexpr std::chrono::milliseconds kQuiet{100};

 private:
  Device& device_;
  uint64_t seen_ = 0;  // submissions
  std::chrono::steady_clock::time_point quiet_since_ = std::chrono::steady_clock::now();
};

}  // namespace hearth
