// Device memory, requested by intent and served by the Vulkan Memory Allocator (VMA). Tracks how
// much is used for what, and how much is left. Thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "runtime/buffer.h"
#include "runtime/result.h"
#include "runtime/vulkan_handles.h"

namespace hearth {

class Device;

std::string_view intent_name(MemoryIntent intent);  // "weights"

// Sizes as messages show them: "1.50 GiB", "384 MiB", "17 bytes".
std::string format_bytes(uint64_t bytes);

struct BufferInfo {
  uint64_t bytes = 0;
  MemoryIntent intent = MemoryIntent::kActivations;
  std::string_view name = "buffer";  // in error messages, captures and VMA's statistics
  // The host writes it sequentially and kernels read it: mapped device memory, or host memory if
  // the device has none. For the intents that are placed on the device.
  bool host_writes = false;
};

struct IntentUse {
  uint64_t bytes = 0, peak_bytes = 0;
  uint64_t buffers = 0;
};

struct MemoryUse {
  std::array<IntentUse, kMemoryIntents> by_intent;
  uint64_t device_budget_bytes = 0;  // what the driver grants this process, device-local
  uint64_t device_used_bytes = 0;    // what this process uses of it: as counted by the driver or
                                     // by us, whichever is more

  const IntentUse& of(MemoryIntent intent) const { return by_intent[static_cast<size_t>(intent)]; }
  uint64_t device_left_bytes() const {
    return device_budget_bytes - std::min(device_budget_bytes, device_used_bytes);
  }
};

class Memory {
 public:
  static Result<std::unique_ptr<Memory>> create(Device& device);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // The contents are undefined. A request for device memory beyond the driver's budget fails
  // instead of evicting other programs. The error says what was requested and what is free.
  Result<Buffer> allocate(const BufferInfo& info);

  // Host memory as a buffer that is only copied from and to: it has no address for kernels. Several
  // devices may import the same memory. Fails where the device cannot, or without
  // DeviceLimits::host_import_alignment. REQUIRES: address and size are multiples of that; the
  // memory outlives the buffer.
  Result<Buffer> import_host(std::span<std::byte> memory, std::string_view name);

  MemoryUse use() const;

 private:
  friend class Buffer;
  explicit Memory(Device& device) : device_(device) {}
  void free(Buffer& buffer);
  Status flush(const Buffer& buffer);
  Status invalidate(const Buffer& buffer);
  Error refused(const BufferInfo& info, std::string_view why) const;

  Device& device_;
  VmaAllocator allocator_ = nullptr;
  mutable std::mutex mutex_;
  std::array<IntentUse, kMemoryIntents> use_;
};

}  // namespace hearth
