// GPU time of each command in a recorded command buffer, from timestamps the recorder writes around
// it. The times are those of the last run. One thread; REQUIRES that the run is over when reading.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.h"
#include "runtime/vulkan_handles.h"

namespace hearth {

class Device;

struct GpuSpan {
  std::string label;
  double start_seconds = 0;  // since the first command began
  double seconds = 0;
};

class GpuTimer {
 public:
  // Room for `spans` commands; a recorder given more than that times only the first ones.
  // Fails on a device without timestamps.
  static Result<std::unique_ptr<GpuTimer>> create(Device& device, uint32_t spans = 1024);
  ~GpuTimer();
  GpuTimer(const GpuTimer&) = delete;
  GpuTimer& operator=(const GpuTimer&) = delete;

  Result<std::vector<GpuSpan>> read() const;

  // For CommandRecorder: forget all, and clear on the GPU; then a pair of calls around a command.
  void record_reset(VkCommandBuffer commands);
  void record_begin(VkCommandBuffer commands, std::string_view label);
  void record_end(VkCommandBuffer commands);

 private:
  GpuTimer(Device& device, uint32_t spans) : device_(device), capacity_(spans) {}

  Device& device_;
  uint32_t capacity_;
  VkQueryPool pool_ = nullptr;
  std::vector<std::string> labels_;
  bool open_ = false;  // between record_begin and record_end
};

}  // namespace hearth
