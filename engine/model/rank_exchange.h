// What ranks that divide every layer exchange within a step (engine/ranks/link_exchange.h).
// All ranks make the same calls in the same order; each waits for the others.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/result.h"

namespace hearth {

class RankExchange {
 public:
  virtual ~RankExchange() = default;

  // total = the sum of all ranks' rows, added up in the order of ranks, so that all ranks get the
  // same numbers. `own` and `total` have the same size and do not overlap.
  virtual Status sum(std::span<const float> own, std::span<float> total) = 0;
  // `all` = [rows, columns of all ranks], on the last rank. The others send their own columns and
  // pass no `all`.
  virtual Status join(std::span<const float> own, uint32_t rows, std::span<float> all) = 0;
};

}  // namespace hearth
