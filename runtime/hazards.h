// Decides where barriers go. Every command declares which buffer ranges it reads and writes. A
// barrier is needed before a command that accesses what a command since the last barrier wrote, or
// that writes what one read. Commands without a conflict run side by side.
//
// Pure bookkeeping without Vulkan. Each recorder has its own, used by one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/buffer.h"

namespace hearth {

enum class AccessMode { kRead, kWrite, kReadWrite, kWriteDisjoint };

struct Access {
  BufferSlice slice;
  AccessMode mode = AccessMode::kRead;
};

inline Access reads(BufferSlice slice) { return {slice, AccessMode::kRead}; }
inline Access writes(BufferSlice slice) { return {slice, AccessMode::kWrite}; }
inline Access reads_writes(BufferSlice slice) { return {slice, AccessMode::kReadWrite}; }
// Writes bytes of a slice that an earlier command also `writes`, but no byte that it does: the two
// do not conflict.
inline Access writes_disjoint(BufferSlice slice) { return {slice, AccessMode::kWriteDisjoint}; }

class Hazards {
 public:
  // Adds a command. Returns true if a barrier is needed before it; everything earlier is then
  // forgotten.
  bool add(std::span<const Access> accesses);

  // To be called when a barrier was recorded for another reason.
  void clear() { open_.clear(); }

 private:
  struct Range {
    const Buffer* buffer;
    uint64_t begin, end;
    bool written;
  };
  bool conflicts(const Access& access) const;

  std::vector<Range> open_;  // accessed since the last barrier
};

}  // namespace hearth
