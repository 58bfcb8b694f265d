#include "ui/data/block_tree.h"

#include <algorithm>
#include <map>
#include <span>

namespace hearth {
namespace {

struct TreeRow {
  RequestId request = 0;
  std::span<const BlockId> blocks;
};

std::vector<TreeRow> rows_of(const EngineView& view) {
  std::vector<TreeRow> rows;
  size_t first = 0;
  for (const SequenceView& sequence : view.sequences) {
    if (sequence.state != SequenceState::kRunning) continue;
    if (sequence.blocks > view.block_tables.size() - first) break;
    rows.push_back({sequence.id, std::span(view.block_tables).subspan(first, sequence.blocks)});
    first += sequence.blocks;
  }
  return rows;
}

// The first block of the group to show.
std::vector<TreeRow> choose_group(std::vector<TreeRow> rows, RequestId marked) {
  std::map<BlockId, size_t> members;
  for (const TreeRow& row : rows)
    if (!row.blocks.empty()) ++members[row.blocks[0]];
  const std::pair<const BlockId, size_t>* best = nullptr;
  for (const auto& group : members)
    if (group.second > 1 && (best == nullptr || group.second > best->second)) best = &group;
  for (const TreeRow& row : rows) {
    if (row.request != marked || row.blocks.empty()) continue;
    if (const auto own = members.find(row.blocks[0]); own->second > 1) best = &*own;
  }
  if (best == nullptr) return {};
  std::erase_if(
      rows, [&](const TreeRow& row) { return row.blocks.empty() || row.blocks[0] != best->first; });
  return rows;
}

}  // namespace

BlockTree block_tree(const EngineView& view, RequestId marked) {
  std::vector<TreeRow> rows = choose_group(rows_of(view), marked);
  // Equal beginnings end up next to each other.
  std::ranges::stable_sort(rows, [](const TreeRow& a, const TreeRow& b) {
    return std::ranges::lexicographical_compare(a.blocks, b.blocks);
  });
  BlockTree tree;
  for (const TreeRow& row : rows) {
    tree.rows.push_back(row.request);
    tree.columns = std::max(tree.columns, static_cast<uint32_t>(row.blocks.size()));
    tree.block_uses += static_cast<uint32_t>(row.blocks.size());
  }
  for (uint32_t i = 0; i < rows.size(); ++i) {
    const std::span<const BlockId> own = rows[i].blocks;
    // What it has in common with the row above is drawn there.
    size_t common = 0;
    if (i > 0) {
      const std::span<const BlockId> above = rows[i - 1].blocks;
      common = static_cast<size_t>(std::ranges::mismatch(own, above).in1 - own.begin());
    }
    for (size_t column = common; column < own.size(); ++column) {
      BlockTree::Cell cell{
          .block = own[column], .column = static_cast<uint32_t>(column), .first_row = i};
      const auto shares = [&](const TreeRow& row) {
        return row.blocks.size() > column &&
               std::ranges::equal(row.blocks.first(column + 1), own.first(column + 1));
      };
      while (i + cell.rows < rows.size() && shares(rows[i + cell.rows])) ++cell.rows;
      if (cell.rows > 1) ++tree.shared_cells;
      tree.cells.push_back(cell);
    }
  }
  return tree;
}

}  // namespace hearth
