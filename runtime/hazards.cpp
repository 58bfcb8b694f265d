#include "runtime/hazards.h"

#include <algorithm>

namespace hearth {

bool Hazards::conflicts(const Access& access) const {
  const uint64_t begin = access.slice.offset;
  const uint64_t end = begin + access.slice.bytes;
  const bool writing = access.mode != AccessMode::kRead;
  return std::any_of(open_.begin(), open_.end(), [&](const Range& range) {
    const bool overlap =
        range.buffer == access.slice.buffer && range.begin < end && begin < range.end;
    const bool along = access.mode == AccessMode::kWriteDisjoint && range.written;
    return overlap && !along && (writing || range.written);
  });
}

bool Hazards::add(std::span<const Access> accesses) {
  const bool barrier = std::any_of(accesses.begin(), accesses.end(),
                                   [&](const Access& access) { return conflicts(access); });
  if (barrier) open_.clear();
  for (const Access& access : accesses)
    open_.push_back({access.slice.buffer, access.slice.offset,
                     access.slice.offset + access.slice.bytes, access.mode != AccessMode::kRead});
  return barrier;
}

}  // namespace hearth
