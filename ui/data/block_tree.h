// Sequences that share blocks, as a tree: the branches of a beam search, completions of one prompt,
// or requests with a common prefix. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "ui/feeds/engine_view.h"

namespace hearth {

struct BlockTree {
  // A block at its place in the sequences, over the rows of all that share it there.
  struct Cell {
    BlockId block = 0;
    uint32_t column = 0;  // index in the block tables
    uint32_t first_row = 0, rows = 1;
  };

  std::vector<RequestId> rows;  // neighbours have as much in common as possible
  std::vector<Cell> cells;      // row by row
  uint32_t columns = 0;         // of the longest row
  uint32_t shared_cells = 0;    // cells with more than one row
  uint32_t block_uses = 0;      // what the rows would need without sharing

  bool empty() const { return rows.empty(); }
};

// The sequences that share their first block with `marked`; without it, or if it shares nothing,
// the largest such group. Empty if no blocks are shared.
BlockTree block_tree(const EngineView& view, RequestId marked);

}  // namespace hearth
