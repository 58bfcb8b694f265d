// Which KV blocks a device has, if ranks share a pool of them (engine/ranks): block n of the pool
// is on rank n % ranks, at place n / ranks of its memory. By default all. Pure.
#pragma once

#include <cstdint>

#include "runtime/rounding.h"

namespace hearth {

struct BlockDeal {
  uint32_t rank = 0, ranks = 1;

  bool is_divided() const { return ranks > 1; }
  bool is_last() const { return rank + 1 == ranks; }
  uint32_t holder(uint32_t block) const { return block % ranks; }
  bool has(uint32_t block) const { return holder(block) == rank; }
  uint32_t place(uint32_t block) const { return block / ranks; }
  // Places that every rank needs for a pool of this many blocks.
  uint32_t places(uint32_t blocks) const { return divide_up(blocks, ranks); }
  bool operator==(const BlockDeal&) const = default;
};

}  // namespace hearth
