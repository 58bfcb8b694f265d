#include "engine/model/dealt_mover.h"

#include <algorithm>
#include <cstring>

namespace hearth {
namespace {

// How many blocks are staged at a time.
constexpr uint32_t kStagedBlocks = 8;

uint64_t block_bytes(const KvCache& pool) {
  uint64_t bytes = 0;
  for (const KvCache::Plane& plane : pool.planes()) bytes += plane.block_bytes;
  return bytes;
}

// Calls visit(bytes in host memory, number of bytes) for every plane of a block.
template <class Visit>
void visit_planes(const KvCache& pool, uint32_t block, Visit visit) {
  for (const KvCache::Plane& plane : pool.planes())
    visit(pool.allocations()[plane.allocation].mapped() + plane.offset +
              uint64_t{block} * plane.block_bytes,
          plane.block_bytes);
}

// Calls act(part) for parts of at most kStagedBlocks moves.
template <class Act>
Status in_parts(std::span<const BlockMove> moves, Act act) {
  while (!moves.empty()) {
    const size_t count = std::min<size_t>(moves.size(), kStagedBlocks);
    HEARTH_TRY(act(moves.first(count)));
    moves = moves.subspan(count);
  }
  return {};
}

}  // namespace

uint32_t staged_blocks(const BlockDeal& deal) { return deal.is_divided() ? kStagedBlocks : 0; }

uint32_t dealt_host_blocks(const BlockDeal& deal, uint32_t swap_blocks) {
  return deal.places(swap_blocks) + staged_blocks(deal);
}

uint64_t most_swap_blocks(const BlockDeal& deal, uint64_t host_blocks) {
  const uint64_t staged = staged_blocks(deal);
  return host_blocks <= staged ? 0 : deal.ranks * (host_blocks - staged);
}

uint32_t DealtMover::first_staged() const { return pools_.host.blocks() - kStagedBlocks; }

// Waits for all earlier moves, so that staged blocks may be read or overwritten.
Status DealtMover::finish_moves() {
  for (BlockMover* mover : {&pools_.forks, &pools_.swaps_out, &pools_.swaps_in})
    HEARTH_TRY(mover->traffic());
  return {};
}

Status DealtMover::move(std::span<const BlockMove> moves, BlockMover& own, bool from_host,
                        bool to_host) {
  std::vector<BlockMove> staying, leaving, arriving;
  for (const BlockMove& move : moves) {
    if (deal_.has(move.from) && deal_.has(move.to))
      staying.push_back({.from = deal_.place(move.from), .to = deal_.place(move.to)});
    else if (deal_.has(move.from))
      leaving.push_back(move);
    else if (deal_.has(move.to))
      arriving.push_back(move);
  }
  HEARTH_TRY(own.move(staying));
  // Every rank sends before it waits.
  HEARTH_TRY(send(leaving, from_host));
  return receive(arriving, to_host);
}

Status DealtMover::send(std::span<const BlockMove> moves, bool from_host) {
  return in_parts(moves, [&](std::span<const BlockMove> part) -> Status {
    std::vector<BlockMove> staged;
    for (uint32_t i = 0; i < part.size(); ++i)
      staged.push_back({.from = deal_.place(part[i].from), .to = first_staged() + i});
    if (!from_host) HEARTH_TRY(pools_.swaps_out.move(staged));
    HEARTH_TRY(finish_moves());
    for (const Buffer& buffer : pools_.host.allocations()) HEARTH_TRY(buffer.invalidate());
    std::vector<std::byte> block(block_bytes(pools_.host));
    for (size_t i = 0; i < part.size(); ++i) {
      std::byte* to = block.data();
      visit_planes(pools_.host, from_host ? staged[i].from : staged[i].to,
                   [&](const std::byte* plane, size_t bytes) {
                     std::memcpy(to, plane, bytes);
                     to += bytes;
                   });
      HEARTH_TRY(exchange_.send_block(deal_.holder(part[i].to), block));
    }
    return {};
  });
}

Status DealtMover::receive(std::span<const BlockMove> moves, bool to_host) {
  return in_parts(moves, [&](std::span<const BlockMove> part) -> Status {
    HEARTH_TRY(finish_moves());
    std::vector<BlockMove> staged;
    for (uint32_t i = 0; i < part.size(); ++i) {
      staged.push_back({.from = first_staged() + i, .to = deal_.place(part[i].to)});
      HEARTH_ASSIGN(const std::vector<std::byte> block,
                    exchange_.receive_block(deal_.holder(part[i].from)));
      if (block.size() != block_bytes(pools_.host))
        return Error{ErrorKind::kInternal, "the ranks have KV blocks of different sizes"};
      const std::byte* from = block.data();
      visit_planes(pools_.host, to_host ? staged[i].to : staged[i].from,
                   [&](std::byte* plane, size_t bytes) {
                     std::memcpy(plane, from, bytes);
                     from += bytes;
                   });
    }
    for (const Buffer& buffer : pools_.host.allocations()) HEARTH_TRY(buffer.flush());
    return to_host ? Status() : pools_.swaps_in.move(staged);
  });
}

}  // namespace hearth
