// The settings of contrastive search. Plain data.
#pragma once

#include <cstdint>

namespace hearth {

struct ContrastiveSearchOptions {
  float alpha = 0;          // 0: no contrastive search; 1: only similarity counts
  std::uint32_t top_k = 0;  // candidates per token

  bool searches() const { return alpha > 0; }
};

}  // namespace hearth
