// Makes failures happen on purpose, so that tests can walk through every one: the n-th allocation
// from now fails, the n-th submission from now loses the device. Costs one atomic decrement.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace hearth {

class FaultSwitch {
 public:
  // The n-th occurrence from now on is to fail, once. 0 disarms.
  void arm(int64_t n) { left_.store(n, std::memory_order_relaxed); }

  // True when this occurrence is the one to fail.
  bool strikes() {
    if (left_.load(std::memory_order_relaxed) <= 0) return false;
    return left_.fetch_sub(1, std::memory_order_relaxed) == 1;
  }

  // Armed, and the occurrence has not come yet.
  bool pending() const { return left_.load(std::memory_order_relaxed) > 0; }

 private:
  std::atomic<int64_t> left_{0};
};

struct Faults {
  FaultSwitch allocation;  // Memory::allocate
  FaultSwitch submission;  // Queue::submit
};

}  // namespace hearth
