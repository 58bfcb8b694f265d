// A logical device: its queues, its memory, and whether it is still alive. Everything created from
// a Device must be destroyed before it. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>

#include "runtime/device_caps.h"
#include "runtime/faults.h"
#include "runtime/result.h"
#include "runtime/vulkan_handles.h"

namespace hearth {

class ChainGuard;
class Instance;
class Memory;
class Queue;

enum class DeviceUse {
  kRun,
  // Only compiles pipelines: no queues, no memory. For drivers that pretend to have a device.
  kCompile,
};

class Device {
 public:
  // `position` is an index into instance.devices(). REQUIRES: refusal() accepts that device, and
  // `instance` outlives the Device.
  static Result<std::unique_ptr<Device>> create(Instance& instance, size_t position,
                                                DeviceUse use = DeviceUse::kRun);
  // The device that select_device() picks for `wanted` (empty: the best one).
  static Result<std::unique_ptr<Device>> open(Instance& instance, std::string_view wanted = {});
  // Waits for the GPU.
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceCaps& caps() const { return caps_; }
  // For check_fragments() and check_chain(). REQUIRES: the capabilities were not read yet.
  void set_lane_fragments(bool value) { caps_.features.lane_fragments = value; }
  void set_ordered_groups(bool value) { caps_.features.ordered_groups = value; }
  Queue& compute() const { return *compute_; }
  // A queue that copies while kernels run, or compute() if the device has none.
  Queue& transfer() const { return transfer_ ? *transfer_ : *compute_; }
  bool has_transfer_queue() const { return transfer_ != nullptr; }
  Memory& memory() const { return *memory_; }
  Faults& faults() { return faults_; }
  // Chained kernels on the compute queue (chain.h).
  ChainGuard& chain() const { return *chain_; }

  // Once lost, a device stays lost: every later call returns lost_error().
  bool lost() const { return lost_.load(std::memory_order_relaxed); }
  Error lost_error() const;
  void mark_lost() { lost_.store(true, std::memory_order_relaxed); }

  // For runtime/ only: handles, errors and names.
  VkDevice handle() const { return handle_; }
  VkPhysicalDevice physical() const { return physical_; }
  Instance& instance() const { return instance_; }
  // Turns a VkResult into an Error, and marks the device as lost if that is the reason.
  Error error_from(int vk_result, std::string_view what);
  // Names an object in validation messages and captures. `object_type` is a VkObjectType. Does
  // nothing in a release build without validation.
  void set_name(int object_type, const void* object, std::string_view name) const;
  bool names_objects() const { return names_; }

 private:
  Device(Instance& instance, size_t position);
  Status open(DeviceUse use);

  Instance& instance_;
  DeviceCaps caps_;
  VkPhysicalDevice physical_ = nullptr;
  VkDevice handle_ = nullptr;
  bool names_ = false;
  Faults faults_;
  std::atomic<bool> lost_{false};
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Queue> compute_, transfer_;
  std::unique_ptr<ChainGuard> chain_;
};

}  // namespace hearth
