// Keeps the program alive when a mapped file turns out shorter than it was, or its disk fails. The
// kernel answers a read of such a page with SIGBUS; while a PageGuard watches the mapping, the rest
// of the mapping becomes zeros instead, the read continues, and damaged() tells.
//
// The first guard installs a handler for SIGBUS, which passes on all other faults to the handler
// before it. Reads may happen on any thread, also on several at once.
#pragma once

#include <cstddef>
#include <span>

namespace hearth {

struct GuardedRegion;

class PageGuard {
 public:
  PageGuard() = default;  // watches nothing
  // REQUIRES: a read-only mapping that begins at a page, and outlives the guard.
  explicit PageGuard(std::span<const std::byte> mapping);
  PageGuard(PageGuard&& other) noexcept;
  PageGuard& operator=(PageGuard&& other) noexcept;
  ~PageGuard();

  // Whether any read so far found a page missing. It may be true before the reader's own thread
  // sees a zero, and never turns false again.
  bool damaged() const;

 private:
  GuardedRegion* region_ = nullptr;
};

}  // namespace hearth
