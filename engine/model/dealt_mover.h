// Moves KV blocks that are dealt to several ranks (ops/block_deal.h): on the device if one rank
// holds both the source and the destination, otherwise through host memory and over the link. The
// swap pool's blocks are dealt in the same way. All ranks are given the same moves. Used by one
// thread, while no step is in flight.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/block_mover.h"
#include "engine/model/rank_exchange.h"
#include "engine/ops/block_deal.h"
#include "engine/scheduling/batch_plan.h"
#include "runtime/result.h"

namespace hearth {

// One rank's own pools, and the movers between them. They number blocks by place on the rank.
struct DealtPools {
  const KvCache& host;  // with dealt_host_blocks() blocks
  BlockMover &forks, &swaps_out, &swaps_in;
};

// How many blocks of host memory a rank uses to stage blocks that it sends or receives; 0 if there
// is only one rank.
uint32_t staged_blocks(const BlockDeal& deal);
// How many blocks of host memory a rank needs if the swap pool has this many: its share of them,
// and those for staging.
uint32_t dealt_host_blocks(const BlockDeal& deal, uint32_t swap_blocks);
// The most blocks that the swap pool of all ranks can have if each rank can allocate this many in
// host memory.
uint64_t most_swap_blocks(const BlockDeal& deal, uint64_t host_blocks);

class DealtMover {
 public:
  DealtMover(const BlockDeal& deal, const DealtPools& pools, RankExchange& exchange)
      : deal_(deal), pools_(pools), exchange_(exchange) {}

  // Moves name blocks by their numbers in the pools of all ranks together. REQUIRES: those of a call
  // are independent (independent_moves()).
  Status fork(std::span<const BlockMove> moves) { return move(moves, pools_.forks, false, false); }
  Status swap_out(std::span<const BlockMove> moves) {
    return move(moves, pools_.swaps_out, false, true);
  }
  Status swap_in(std::span<const BlockMove> moves) {
    return move(moves, pools_.swaps_in, true, false);
  }

 private:
  Status move(std::span<const BlockMove> moves, BlockMover& own, bool from_host, bool to_host);
  // Sends the blocks whose destination is on another rank; receives those whose source is.
  Status send(std::span<const BlockMove> moves, bool from_host);
  Status receive(std::span<const BlockMove> moves, bool to_host);
  Status finish_moves();
  uint32_t first_staged() const;

  const BlockDeal deal_;
  const DealtPools pools_;
  RankExchange& exchange_;
};

}  // namespace hearth
