// The memory that requests may hold together, so that many large ones cannot exhaust the machine.
// Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>

namespace hearth {

class MemoryBudget {
 public:
  explicit MemoryBudget(uint64_t bytes) : bytes_(bytes) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  uint64_t used() const { return used_; }

  // Gives freed pages back to the system if much of the budget was used since they last were: the
  // allocator would keep them. One thread calls it every now and then.
  void return_freed_pages();

 private:
  friend class MemoryLease;
  bool take(uint64_t bytes);
  void give_back(uint64_t bytes) { used_ -= bytes; }

  const uint64_t bytes_;
  std::atomic<uint64_t> used_{0}, peak_{0};  // peak_: since pages were last given back
  std::chrono::steady_clock::time_point returned_ = {};
};

// Makes the allocator give large blocks back to the system as soon as they are freed. By itself it
// learns to keep them, one heap per thread. For the whole program, once.
void return_large_blocks_at_once();

// One holder's share of a budget, given back when the lease ends. REQUIRES: the budget outlives it.
class MemoryLease {
 public:
  MemoryLease() = default;  // of no budget: holds nothing
  explicit MemoryLease(MemoryBudget& budget) : budget_(&budget) {}
  ~MemoryLease() { release(); }
  MemoryLease(MemoryLease&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryLease& operator=(MemoryLease&& other) noexcept {
    if (this == &other) return *this;
    release();
    budget_ = std::exchange(other.budget_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }

  // Holds at least `bytes` from now on. False: the budget does not have as much left, and the lease
  // is as it was. REQUIRES: a budget.
  bool grow_to(uint64_t bytes) {
    if (bytes <= bytes_) return true;
    if (!budget_->take(bytes - bytes_)) return false;
    bytes_ = bytes;
    return true;
  }
  void release() {
    if (budget_ != nullptr) budget_->give_back(std::exchange(bytes_, 0));
  }

 private:
  MemoryBudget* budget_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace hearth
