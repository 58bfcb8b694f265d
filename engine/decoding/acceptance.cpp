#include "engine/decoding/acceptance.h"

#include <algorithm>
#include <cassert>

#include "engine/scheduling/batch_plan.h"

namespace hearth {

void find_verified_rows(std::span<const std::uint32_t> parents, bool in_place,
                        std::span<VerifiedRow> rows) {
  assert(!rows.empty() && rows.size() <= 1 + kMaxProposed);
  assert(parents.empty() || parents.size() + 1 == rows.size());
  std::ranges::fill(rows, VerifiedRow{});
  for (std::uint32_t i = 0; i + 1 < rows.size(); ++i) {
    const std::uint32_t before = i == 0 ? kNoParent : i - 1;
    const std::uint32_t parent = parents.empty() ? before : parents[i];
    VerifiedRow& parent_row = rows[parent == kNoParent ? 0 : parent + 1];
    rows[i + 1].path = parent_row.path | 1u << i;
    if (!in_place || parent == before) parent_row.followers |= 1u << i;
  }
}

void follow_accepted(std::span<const std::uint32_t> accepted, Judgement& judgement) {
  judgement.path.clear();
  judgement.next_row = 0;
  // Followers come after the row that they follow. Any other number ends the path.
  for (std::uint32_t next = accepted[0]; next > judgement.next_row && next < accepted.size();
       next = accepted[judgement.next_row]) {
    judgement.path.push_back(next - 1);
    judgement.next_row = next;
  }
}

}  // namespace hearth
