// What the sampling kernels and the host make of proposals, on the host alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/decoding/acceptance.h"

namespace hearth::testing {

// 1 + the first of a row's followers, as bits, that is the token sampled at the row, or 0.
inline uint32_t reference_accepted(uint32_t followers, std::span<const uint32_t> proposed,
                                   uint32_t sampled) {
  for (uint32_t i = 0; i < proposed.size(); ++i)
    if ((followers >> i & 1) != 0 && proposed[i] == sampled) return i + 1;
  return 0;
}

// `sampled` has the token of each row: after the newest committed token, then after each proposal.
inline void judge_proposals(std::span<const uint32_t> proposed, std::span<const uint32_t> parents,
                            std::span<const uint32_t> sampled, Judgement& judgement,
                            bool in_place = false) {
  std::vector<VerifiedRow> rows(sampled.size());
  find_verified_rows(parents, in_place, rows);
  std::vector<uint32_t> accepted;
  for (size_t row = 0; row < sampled.size(); ++row)
    accepted.push_back(reference_accepted(rows[row].followers, proposed, sampled[row]));
  follow_accepted(accepted, judgement);
}

}  // namespace hearth::testing
