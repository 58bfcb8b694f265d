#include "engine/ranks/layer_split.h"

#include <gtest/gtest.h>

namespace hearth::testing {
namespace {

using Ranges = std::vector<LayerRange>;

SplitRequest even_layers(uint32_t layers, std::vector<uint64_t> room) {
  return {.layer_bytes = std::vector<uint64_t>(layers, 100), .room_bytes = std::move(room)};
}

TEST(LayerSplit, EqualDevicesGetEqualShares) {
  EXPECT_EQ(*split_layers(even_layers(32, {5, 5})), (Ranges{{0, 16}, {16, 32}}));
  EXPECT_EQ(*split_layers(even_layers(32, {5, 5, 5, 5})),
            (Ranges{{0, 8}, {8, 16}, {16, 24}, {24, 32}}));
}

TEST(LayerSplit, ADeviceWithMoreMemoryGetsMoreLayers) {
  EXPECT_EQ(*split_layers(even_layers(32, {24, 8})), (Ranges{{0, 24}, {24, 32}}));
  EXPECT_EQ(*split_layers(even_layers(10, {1, 2, 2})), (Ranges{{0, 2}, {2, 6}, {6, 10}}));
}

TEST(LayerSplit, EmbeddingAndOutputCountToo) {
  SplitRequest request = even_layers(8, {1, 1});
  request.input_bytes = 400;
  EXPECT_EQ(*split_layers(request), (Ranges{{0, 2}, {2, 8}}));
  request.output_bytes = 400;
  EXPECT_EQ(*split_layers(request), (Ranges{{0, 4}, {4, 8}}));
  request.input_bytes = 0;
  EXPECT_EQ(*split_layers(request), (Ranges{{0, 6}, {6, 8}}));
}

TEST(LayerSplit, EveryRankHasALayer) {
  EXPECT_EQ(*split_layers(even_layers(3, {1000, 1, 1})), (Ranges{{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_EQ(*split_layers(even_layers(4, {1, 1, 1000})), (Ranges{{0, 1}, {1, 2}, {2, 4}}));
  EXPECT_EQ(*split_layers(even_layers(2, {0, 0})), (Ranges{{0, 1}, {1, 2}}));
  SplitRequest large_input = even_layers(4, {1, 1, 1});
  large_input.input_bytes = 100000;
  EXPECT_EQ(*split_layers(large_input), (Ranges{{0, 1}, {1, 2}, {2, 4}}));
  const auto refused = split_layers(even_layers(2, {1, 1, 1}));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "a model of 2 layers cannot be divided over 3 ranks");
}

TEST(LayerSplit, TheUserMayChoose) {
  SplitRequest request = even_layers(8, {1, 1, 1});
  request.layers = {5, 1, 2};
  EXPECT_EQ(*split_layers(request), (Ranges{{0, 5}, {5, 6}, {6, 8}}));
  for (const std::vector<uint32_t>& wrong :
       std::vector<std::vector<uint32_t>>{{4, 4}, {5, 1, 1}, {8, 0, 0}, {5, 1, 3}, {2, 2, 2, 2}}) {
    request.layers = wrong;
    const auto refused = split_layers(request);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().message,
              "--layers needs one number per rank, each at least 1: 3 numbers that add up to 8 "
              "layers");
  }
}

}  // namespace
}  // namespace hearth::testing
