// A device's share of every layer, if ranks divide heads, MLP columns and the vocabulary among them
// (engine/ranks). By default all of it. Pure.
#pragma once

#include <cstdint>

namespace hearth {

struct TensorShard {
  uint32_t index = 0, count = 1;

  bool is_divided() const { return count > 1; }
  bool is_first() const { return index == 0; }
  bool is_last() const { return index + 1 == count; }
  bool operator==(const TensorShard&) const = default;
};

// Consecutive items: heads, columns or rows.
struct ShardRange {
  uint64_t first = 0, size = 0;
};

// The share of `total` items, in whole units as even as possible. Items after the last whole unit
// belong to the last share. Shares may be empty.
inline ShardRange shard_range(const TensorShard& shard, uint64_t total, uint64_t unit) {
  const uint64_t units = total / unit;
  const uint64_t first = units * shard.index / shard.count * unit;
  const uint64_t end = shard.is_last() ? total : units * (shard.index + 1) / shard.count * unit;
  return {.first = first, .size = end - first};
}

// A rank's share of a step's rows (program/row_division.h). No share is empty if there are at least
// as many rows as ranks.
inline ShardRange own_rows(const TensorShard& shard, uint64_t rows) {
  return shard_range(shard, rows, 1);
}

}  // namespace hearth
