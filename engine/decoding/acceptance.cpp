#include "engine/decoding/acceptance.h"

#include <algorithm>
#include <cassert>

#include "engine/scheduling/batch_plan.h"

namespace hearth {

void find_followers(std::uint32_t proposed, std::span<const std::uint32_t> parents, bool in_place,
                    std::span<std::uint32_t> followers) {
  assert(proposed <= kMaxProposed && followers.size() == proposed + 1);
  assert(parents.empty() || parents.size() == proposed);
  std::ranges::fill(followers, 0u);
  for (std::uint32_t i = 0; i < proposed; ++i) {
    const std::uint32_t before = i == 0 ? kNoParent : i - 1;
    const std::uint32_t parent = parents.empty() ? before : parents[i];
    if (in_place && parent != before) continue;
    followers[parent == kNoParent ? 0 : parent + 1] |= 1u << i;
  }
}

void follow_accepted(std::span<const std::uint32_t> accepted, Judgement& judgement) {
  judgement.path.clear();
  judgement.next_row = 0;
  const std::size_t proposed = accepted.size() - 1;
  // Followers come after what they follow.
  for (std::uint32_t next = accepted[0]; next < proposed && next >= judgement.next_row;
       next = accepted[judgement.next_row]) {
    judgement.path.push_back(next);
    judgement.next_row = next + 1;
  }
}

}  // namespace hearth
