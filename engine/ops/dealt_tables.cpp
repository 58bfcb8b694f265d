#include "engine/ops/dealt_tables.h"

#include <algorithm>

#include "params/paged_kv.h"
#include "runtime/rounding.h"

namespace hearth {

void DealtTables::deal(const BlockDeal& deal, std::span<const params::StepSequence> sequences,
                       std::span<const uint32_t> tables) {
  words_.clear();
  sequences_.clear();
  blocks_before_.clear();
  for (const uint32_t block : tables)
    words_.push_back(deal.has(block) ? deal.place(block) : params::kElsewhere);
  for (const params::StepSequence& sequence : sequences) {
    const uint32_t wanted =
        divide_up(sequence.first_position + sequence.rows, params::kTokensPerBlock);
    const auto end = static_cast<uint32_t>(tables.size());
    const uint32_t given = end - std::min(end, sequence.block_table);
    const auto begin = static_cast<uint32_t>(words_.size());
    sequences_.push_back({.own_table = begin,
                          .first_count = static_cast<uint32_t>(blocks_before_.size()),
                          .blocks = std::min(wanted, given)});
    for (uint32_t i = 0; i < sequences_.back().blocks; ++i) {
      blocks_before_.push_back(static_cast<uint32_t>(words_.size()) - begin);
      const uint32_t place = words_[sequence.block_table + i];
      if (place != params::kElsewhere) words_.push_back(place);
    }
    blocks_before_.push_back(static_cast<uint32_t>(words_.size()) - begin);
  }
}

bool DealtTables::has(size_t sequence, uint32_t position) const {
  const Table& table = sequences_[sequence];
  const uint32_t block = position / params::kTokensPerBlock;
  if (block >= table.blocks) return false;
  const uint32_t* const before = blocks_before_.data() + table.first_count + block;
  return before[1] != before[0];
}

uint32_t DealtTables::keys_before(size_t sequence, uint32_t position) const {
  const Table& table = sequences_[sequence];
  const uint32_t block = std::min(position / params::kTokensPerBlock, table.blocks);
  const uint32_t whole = blocks_before_[table.first_count + block] * params::kTokensPerBlock;
  return has(sequence, position) ? whole + position % params::kTokensPerBlock : whole;
}

}  // namespace hearth
