// Moves KV blocks if ranks share a pool of them (ops/block_deal.h): on the device if a rank has
// both places, else through host memory and over the link. Blocks of the swap pool are dealt in the
// same way as those of the pool. All ranks get the same moves. For one thread; no step is in
// flight.
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

// A rank's own pools, by place, and the movers between them.
struct DealtPools {
  const KvCache& host;  // dealt_host_blocks() of them
  BlockMover &forks, &swaps_out, &swaps_in;
};

// Blocks of host memory through which others leave and enter a rank's device; 0 if it is alone.
uint32_t staged_blocks(const BlockDeal& deal);
// Blocks of host memory that a rank needs if there are this many to swap to: its share, and the
// staged ones.
uint32_t dealt_host_blocks(const BlockDeal& deal, uint32_t swap_blocks);
// The most blocks to swap to, of all ranks, if each rank can allocate this many in host memory.
uint64_t most_swap_blocks(const BlockDeal& deal, uint64_t host_blocks);

class DealtMover {
 public:
  DealtMover(const BlockDeal& deal, const DealtPools& pools, RankExchange& exchange)
      : deal_(deal), pools_(pools), exchange_(exchange) {}

  // The moves are in numbers of the shared pools.
  Status fork(std::span<const BlockMove> moves) { return move(moves, pools_.forks, false, false); }
  Status swap_out(std::span<const BlockMove> moves) {
    return move(moves, pools_.swaps_out, false, true);
  }
  Status swap_in(std::span<const BlockMove> moves) {
    return move(moves, pools_.swaps_in, true, false);
  }

 private:
  Status move(std::span<const BlockMove> moves, BlockMover& own, bool from_host, bool to_host);
  // Blocks that this rank has and another one is to have, and the other way round.
  Status send(std::span<const BlockMove> moves, bool from_host);
  Status receive(std::span<const BlockMove> moves, bool to_host);
  Status finish_moves();
  uint32_t first_staged() const;

  const BlockDeal deal_;
  const DealtPools pools_;
  RankExchange& exchange_;
};

}  // namespace hearth
