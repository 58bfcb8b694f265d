// What ranks exchange within a step, and when blocks move from one to another
// (engine/ranks/link_exchange.h). All ranks make the same calls in the same order; each waits for
// the others. Only a block concerns just two of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/result.h"

namespace hearth {

class RankExchange {
 public:
  virtual ~RankExchange() = default;

  // total = the sum of all ranks' rows, added up in the order of ranks, so that all ranks get the
  // same numbers. `own` and `total` have the same size and do not overlap.
  virtual Status sum(std::span<const float> own, std::span<float> total) = 0;
  // The same for [rows, width], but `total` = the rows of this rank (program/row_division.h) alone.
  virtual Status sum_own(std::span<const float> own, uint32_t rows, std::span<float> total) = 0;
  // `all` = [rows, width], the rows of all ranks one after the other, f32 or f16 as its size says.
  // `own` are this rank's, in the same form; those of others may come in another one.
  virtual Status gather(std::span<const std::byte> own, uint32_t rows, uint32_t width,
                        std::span<std::byte> all) = 0;
  // `all` = [rows, columns of all ranks], on the last rank. The others send their own columns and
  // pass no `all`.
  virtual Status join(std::span<const float> own, uint32_t rows, std::span<float> all) = 0;
  // `all` = attention to the keys of all ranks, [heads of all rows, head_size]. `own` are the sums
  // over this rank's keys, [heads of all rows, head_size + kAttentionStats] (params/attention.h).
  // They are merged in the order of ranks, so that all ranks get the same numbers; a head without
  // keys on any rank becomes 0. With `on_last`, only the last rank gets them, as from join().
  virtual Status merge(std::span<const float> own, uint32_t head_size, std::span<float> all,
                       bool on_last = false) = 0;

  // The contents of a KV block, to a rank and from one. Sending does not wait.
  virtual Status send_block(uint32_t rank, std::span<const std::byte> block) = 0;
  virtual Result<std::vector<std::byte>> receive_block(uint32_t rank) = 0;
};

}  // namespace hearth
