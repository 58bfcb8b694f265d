// Replaces operator new of the program that includes this (once), and counts a thread's allocations
// while its `counting` is set.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace hearth::testing {

inline thread_local bool counting = false;
inline std::atomic<std::uint64_t> allocations{0};

inline void* counted_allocation(std::size_t bytes) {
  if (counting) ++allocations;
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace hearth::testing

// Not inlined: otherwise GCC sees memory of operator new go to free(), or of malloc() to operator
// delete, and warns (-Wmismatched-new-delete).
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  return hearth::testing::counted_allocation(bytes);
}
[[gnu::noinline]] void* operator new[](std::size_t bytes) {
  return hearth::testing::counted_allocation(bytes);
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return hearth::testing::counted_allocation(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
