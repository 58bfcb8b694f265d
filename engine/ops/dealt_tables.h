// The block tables of a step on one of several ranks that share a pool of KV blocks. Rope writes a
// token's key and value only if its block is here. Attention goes over the keys that are here as if
// there were no others: they are numbered without gaps, in the order of their positions.
//
// A rank thus needs no kernel of its own, if the lists of attention's work are in these numbers
// (attention_work.h). Pure; reuses its memory. For one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/ops/block_deal.h"
#include "params/step.h"

namespace hearth {

class DealtTables {
 public:
  // `tables` are the block tables of all `sequences`.
  void deal(const BlockDeal& deal, std::span<const params::StepSequence> sequences,
            std::span<const uint32_t> tables);

  // First the step's tables, with places instead of blocks, and kElsewhere for those of other
  // ranks; then, from own_table() on, each sequence's places here.
  const std::vector<uint32_t>& words() const { return words_; }
  uint32_t own_table(size_t sequence) const { return sequences_[sequence].own_table; }
  // Whether the key at a position of the sequence is here, or would be.
  bool has(size_t sequence, uint32_t position) const;
  // How many of the keys before a position are here: the number of the next one.
  uint32_t keys_before(size_t sequence, uint32_t position) const;

 private:
  struct Table {
    uint32_t own_table = 0;                // in words_
    uint32_t first_count = 0, blocks = 0;  // in blocks_before_: one more than blocks
  };
  std::vector<uint32_t> words_;
  std::vector<Table> sequences_;
  std::vector<uint32_t> blocks_before_;  // of a sequence's blocks, those here before each
};

}  // namespace hearth
