// A timeline semaphore, and the one mechanism for GPU lifetimes: an object handed to
// release_after() is destroyed once the GPU has passed that value. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "runtime/device_caps.h"
#include "runtime/result.h"
#include "runtime/vulkan_handles.h"

namespace hearth {

class Device;
class Timeline;

// How long to wait for a device before it is taken for hanging. Operating systems reset a GPU that
// is busy for longer than this; nobody resets a CPU, where a long prompt may take minutes.
std::chrono::seconds gpu_patience(DeviceType type);

// A point in the GPU's work: `timeline` has reached `value`.
struct TimelinePoint {
  const Timeline* timeline = nullptr;
  uint64_t value = 0;
};

class Timeline {
 public:
  static Result<std::unique_ptr<Timeline>> create(Device& device, const char* name);
  // Destroys all objects still held. REQUIRES: no GPU work that signals it is left.
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // For Queue: takes the value that the next submission signals; cancel_next() if that failed.
  uint64_t next() { return ++last_; }
  void cancel_next() { --last_; }
  uint64_t last_submitted() const { return last_; }

  // The value that the GPU has reached, or an error if the device is lost.
  Result<uint64_t> reached() const;
  // Blocks until `value` is reached. If that takes longer than `limit`, the device hangs: it is
  // marked as lost, and that is the error. 0: gpu_patience() of the device.
  Status wait(uint64_t value, std::chrono::nanoseconds limit = {}) const;
  // The same for a value without which the device has nothing to do: asks for it again and again,
  // because a driver takes a while to wake up a thread. Keeps a core busy for up to kPolling, then
  // waits as usual. CPU devices need their cores, so there it is wait().
  static constexpr std::chrono::milliseconds kPolling{20};
  Status wait_promptly(uint64_t value) const;

  // Holds `object` until `value` has been reached; collect() then destroys it.
  template <class T>
  void release_after(uint64_t value, T object) {
    static_assert(!std::is_lvalue_reference_v<T>, "hand the object over");
    const std::lock_guard lock(mutex_);
    to_release_.push_back({value, std::make_unique<Held<T>>(std::move(object))});
  }
  // Destroys objects that the GPU no longer needs. Queue calls this at every submission.
  void collect();
  size_t held_count() const;

  VkSemaphore handle() const { return handle_; }

 private:
  struct HeldBase {
    HeldBase() = default;
    HeldBase(const HeldBase&) = delete;
    HeldBase& operator=(const HeldBase&) = delete;
    virtual ~HeldBase() = default;
  };
  template <class T>
  struct Held final : HeldBase {
    explicit Held(T value) : object(std::move(value)) {}
    T object;
  };
  struct Entry {
    uint64_t value;
    std::unique_ptr<HeldBase> object;
  };

  explicit Timeline(Device& device) : device_(device) {}

  Device& device_;
  VkSemaphore handle_ = nullptr;
  std::atomic<uint64_t> last_{0};  // written under the Queue's mutex
  mutable std::mutex mutex_;
  std::deque<Entry> to_release_;  // unordered: two threads may add at once
};

}  // namespace hearth
