// Decides where barriers go. Every command says which buffer ranges it reads and writes; a barrier
// is needed before a command that touches what an earlier one since the last barrier wrote, or
// writes what an earlier one read. Commands that do not meet run side by side.
//
// Pure bookkeeping: knows no Vulkan. One recorder, one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/buffer.h"

namespace hearth {

enum class AccessMode { kRead, kWrite, kReadWrite, kWriteAlong };

struct Access {
  BufferSlice slice;
  AccessMode mode = AccessMode::kRead;
};

inline Access reads(BufferSlice slice) { return {slice, AccessMode::kRead}; }
inline Access writes(BufferSlice slice) { return {slice, AccessMode::kWrite}; }
inline Access reads_writes(BufferSlice slice) { return {slice, AccessMode::kReadWrite}; }
// Writes bytes of a slice of which a command before, that `writes` it, does not: the two do not
// meet.
inline Access writes_along(BufferSlice slice) { return {slice, AccessMode::kWriteAlong}; }

class Hazards {
 public:
  // Adds a command. True when a barrier must stand before it; what came before is then forgotten.
  bool add(std::span<const Access> accesses);

  // A barrier was recorded for another reason.
  void clear() { open_.clear(); }

 private:
  struct Range {
    const Buffer* buffer;
    uint64_t begin, end;
    bool written;
  };
  bool conflicts(const Access& access) const;

  std::vector<Range> open_;  // what has been touched since the last barrier
};

}  // namespace hearth
