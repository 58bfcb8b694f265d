// GPU time of each command in a command buffer, from timestamps that the recorder writes around it.
// The times are those of the last run. Used by one thread. REQUIRES: the run is over when read() is
// called.
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
  double start_seconds = 0;  // since the start of the first command
  double seconds = 0;
};

class GpuTimer {
 public:
  // Has room for `spans` commands; of more commands only the first `spans` are timed. Fails on a
  // device without timestamps.
  static Result<std::unique_ptr<GpuTimer>> create(Device& device, uint32_t spans = 1024);
  ~GpuTimer();
  GpuTimer(const GpuTimer&) = delete;
  GpuTimer& operator=(const GpuTimer&) = delete;

  Result<std::vector<GpuSpan>> read() const;

  // For CommandRecorder: clears the labels here and the timestamps on the GPU; then one pair of
  // calls around each command.
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
