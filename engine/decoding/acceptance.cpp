#include "engine/decoding/acceptance.h"

#include <cassert>

#include "engine/scheduling/batch_plan.h"

namespace hearth {

void judge_proposals(std::span<const std::uint32_t> proposed,
                     std::span<const std::uint32_t> parents, std::span<const std::uint32_t> sampled,
                     Judgement& judgement, bool in_place) {
  assert(sampled.size() == proposed.size() + 1);
  assert(parents.empty() || parents.size() == proposed.size());
  judgement.path.clear();
  judgement.next_row = 0;
  std::uint32_t last = kNoParent;
  // Children come after their parents, so that one pass follows the accepted path.
  for (std::uint32_t i = 0; i < proposed.size(); ++i) {
    const std::uint32_t parent = !parents.empty() ? parents[i] : (i == 0 ? kNoParent : i - 1);
    if (parent != last || proposed[i] != sampled[judgement.next_row]) continue;
    if (in_place && i != judgement.path.size()) break;
    judgement.path.push_back(i);
    judgement.next_row = 1 + i;
    last = i;
  }
}

}  // namespace hearth
