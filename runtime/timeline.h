// A timeline semaphore, and the one mechanism for GPU lifetime: hand an object to release_after()
// and it is destroyed once the GPU has passed that value. Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "runtime/result.h"
#include "runtime/vulkan_handles.h"

namespace hearth {

class Device;
class Timeline;

// A moment in the GPU's work: `timeline` has reached `value`.
struct TimelinePoint {
  const Timeline* timeline = nullptr;
  uint64_t value = 0;
};

class Timeline {
 public:
  static Result<std::unique_ptr<Timeline>> create(Device& device, const char* name);
  // Releases all that is still held. REQUIRES: the GPU has no work left that signals it.
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // For Queue: takes the value the next submission signals; gives it back if that failed.
  uint64_t next() { return ++last_; }
  void give_back() { --last_; }
  uint64_t last_submitted() const { return last_; }

  // The value the GPU has reached, or an error if the device is lost.
  Result<uint64_t> reached() const;
  // Blocks until `value` is reached. A wait that lasts longer than `limit` is an error.
  Status wait(uint64_t value, std::chrono::nanoseconds limit = std::chrono::hours(1)) const;

  // Keeps `object` until `value` has been reached; then destroys it in collect().
  template <class T>
  void release_after(uint64_t value, T object) {
    static_assert(!std::is_lvalue_reference_v<T>, "hand the object over");
    const std::lock_guard lock(mutex_);
    held_.push_back({value, std::make_unique<Held<T>>(std::move(object))});
  }
  // Destroys what the GPU no longer needs. Queue calls it at every submission.
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
  std::deque<Entry> held_;  // not ordered: two threads may hand over at once
};

}  // namespace hearth
