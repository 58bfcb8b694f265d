#include "ui/data/block_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth {
namespace {

using ::testing::ElementsAre;

EngineView with_tables(const std::vector<std::pair<RequestId, std::vector<BlockId>>>& tables) {
  EngineView view;
  for (const auto& [request, blocks] : tables) {
    view.sequences.push_back({.id = request,
                              .state = SequenceState::kRunning,
                              .blocks = static_cast<uint32_t>(blocks.size())});
    view.block_tables.insert(view.block_tables.end(), blocks.begin(), blocks.end());
  }
  return view;
}

// Three beams: all share the prompt's blocks 5 and 6; two of them also share block 9.
TEST(BlockTree, BeamsBranchWhereTheirBlocksDiffer) {
  const EngineView view =
      with_tables({{1, {5, 6, 9, 20}}, {2, {5, 6, 7}}, {3, {5, 6, 9, 21}}, {4, {30}}});
  const BlockTree tree = block_tree(view, 0);
  EXPECT_THAT(tree.rows, ElementsAre(2, 1, 3));
  EXPECT_EQ(tree.columns, 4u);
  EXPECT_EQ(tree.block_uses, 11u);
  EXPECT_EQ(tree.shared_cells, 3u);
  ASSERT_EQ(tree.cells.size(), 6u);
  EXPECT_EQ(tree.cells[0].block, 5u);
  EXPECT_EQ(tree.cells[0].rows, 3u);
  EXPECT_EQ(tree.cells[3].block, 9u);
  EXPECT_EQ(tree.cells[3].first_row, 1u);
  EXPECT_EQ(tree.cells[3].rows, 2u);
}

TEST(BlockTree, TheMarkedRequestChoosesItsGroup) {
  const EngineView view =
      with_tables({{1, {5, 6}}, {2, {5, 7}}, {3, {5, 8}}, {4, {30, 31}}, {5, {30, 32}}});
  EXPECT_EQ(block_tree(view, 0).rows.size(), 3u);
  EXPECT_THAT(block_tree(view, 5).rows, ElementsAre(4, 5));
}

TEST(BlockTree, NothingSharedIsNoTree) {
  EXPECT_TRUE(block_tree(with_tables({{1, {5}}, {2, {6}}, {3, {}}}), 1).empty());
  EXPECT_TRUE(block_tree({}, 0).empty());
  // Tables that are missing, as in a recording.
  EngineView view = with_tables({{1, {5}}, {2, {5}}});
  view.block_tables.clear();
  EXPECT_TRUE(block_tree(view, 0).empty());
}

}  // namespace
}  // namespace hearth
