// What ranks exchange within a step, and the KV blocks that move from one to another, over a link.
// Messages are numbered, so that ranks which disagree about the order of steps notice it. For the
// thread of a rank's loop.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/model/rank_exchange.h"
#include "engine/model/tensor_shard.h"
#include "engine/ranks/link.h"
#include "engine/ranks/rank_command.h"
#include "engine/ranks/spare_messages.h"

namespace hearth {

class LinkExchange final : public RankExchange {
 public:
  // REQUIRES: `link` outlives the exchange.
  explicit LinkExchange(Link& link) : link_(link), spare_(link.ranks() - 1) {}

  // These fail with the reason of a rank that has given up.
  Status sum(std::span<const float> own, std::span<float> total) override;
  Status sum_own(std::span<const float> own, uint32_t rows, std::span<float> total) override;
  Status gather(std::span<const std::byte> own, uint32_t rows, uint32_t width,
                std::span<std::byte> all) override;
  Status join(std::span<const float> own, uint32_t rows, std::span<float> all) override;
  Status merge(std::span<const float> own, uint32_t head_size, std::span<float> all,
               bool on_last = false) override;
  Status send_block(uint32_t rank, std::span<const std::byte> block) override;
  Result<std::vector<std::byte>> receive_block(uint32_t rank) override;
  // Tells the other ranks, which may be waiting, that this one does not run the step, nor any later
  // one. Only the first call does anything.
  void give_up(const Error& error);

 private:
  uint32_t last_rank() const { return link_.ranks() - 1; }
  Status send(uint32_t rank, std::span<const float> rows);
  // The next message of a rank.
  Result<RowsMessage> receive(uint32_t rank);
  // The part of `size` floats in units of so many that a rank adds up.
  ShardRange part_of(uint64_t size, uint32_t rank, uint64_t unit) const {
    return shard_range({.index = rank, .count = link_.ranks()}, size, unit);
  }
  // Sends own rows to all others, or, divided into parts of whole units, to each of them its part.
  // `sources_` are then the rows, or this rank's part of the rows, of all ranks.
  Status share(std::span<const float> own, std::optional<uint64_t> unit = {});
  // Receives the other ranks' rows or parts as `sources_`, which have as many numbers as this
  // one's.
  Status receive_sources(std::span<const float> own);
  // total = the sum of `sources_`, in the order of ranks.
  void add_up(std::span<float> total) const;
  // The same as sum(), but every rank adds up only a part of the rows, and sends it to the others.
  Status divided_sum(std::span<const float> own, std::span<float> total);

  Link& link_;
  uint64_t number_ = 0;  // of the current exchange
  bool gave_up_ = false;
  SpareMessages spare_;                          // of what other ranks sent, for what is sent next
  std::vector<RowsMessage> messages_;            // of the current exchange, by rank
  std::vector<std::span<const float>> sources_;  // all ranks' rows, own ones included
  std::vector<float> part_;                      // of a divided sum
  std::vector<float> shares_;                    // of each rank in a head's result, by its sum
};

}  // namespace hearth
