#include "tools/server/memory_budget.h"

#include <algorithm>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace hearth {

bool MemoryBudget::take(uint64_t bytes) {
  uint64_t used = used_;
  do {
    if (bytes > bytes_ - std::min(used, bytes_)) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes));
  uint64_t peak = peak_;
  while (used + bytes > peak && !peak_.compare_exchange_weak(peak, used + bytes)) {
  }
  return true;
}

void MemoryBudget::return_freed_pages() {
  constexpr uint64_t kWorthwhileBytes = 1 << 20;
  // Walking the heap holds other threads up for a moment, so a busy server does it rarely.
  constexpr std::chrono::seconds kBusyInterval{10};
  const auto now = std::chrono::steady_clock::now();
  if (peak_ < kWorthwhileBytes || (used_ > 0 && now - returned_ < kBusyInterval)) return;
  peak_ = 0;
  returned_ = now;
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

void return_large_blocks_at_once() {
#ifdef __GLIBC__
  // The values that it starts with; setting them keeps them.
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  mallopt(M_TRIM_THRESHOLD, 128 << 10);
#endif
}

}  // namespace hearth
