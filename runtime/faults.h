// Injects failures so that tests can cover every error path: the n-th allocation from now fails,
// the n-th submission from now loses the device, or the n-th wait recorded from now never ends.
// Costs one atomic load. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

namespace hearth {

class FaultSwitch {
 public:
  // Makes the n-th occurrence from now fail, once. 0 disarms.
  void arm(int64_t n) { left_.store(n, std::memory_order_relaxed); }

  // To be called at every occurrence. True if this is the one that fails.
  bool should_fail() {
    if (left_.load(std::memory_order_relaxed) <= 0) return false;
    return left_.fetch_sub(1, std::memory_order_relaxed) == 1;
  }

  // Armed, and the occurrence has not happened yet.
  bool pending() const { return left_.load(std::memory_order_relaxed) > 0; }

 private:
  std::atomic<int64_t> left_{0};
};

struct Faults {
  FaultSwitch allocation;  // Memory::allocate
  FaultSwitch submission;  // Queue::submit
  FaultSwitch chain;       // a kernel that waits for one workgroup more than there is (chain.h)
};

}  // namespace hearth
