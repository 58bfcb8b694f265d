// How long messages take between ranks, and what that means for a model divided over them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/ranks/link.h"
#include "runtime/result.h"

namespace hearth {

struct LinkTiming {
  uint64_t bytes = 0;
  double seconds = 0;  // one way: half of the median round trip
  std::array<uint32_t, 2> ranks = {0, 1};
};

// Rank 0's part: sends messages of each size between every two ranks, one pair after the other. The
// answer has, for each size, the pair that took longest: ranks that meet wait for the slowest.
// Then the other ranks may end. REQUIRES: sizes are at least 1.
Result<std::vector<LinkTiming>> time_links(Link& link, const std::vector<uint64_t>& sizes,
                                           uint32_t repetitions);
// The part of every other rank, until rank 0 is done.
Status help_time_links(Link& link);

// The time of a message of any size, between those measured. REQUIRES: sizes ascend.
double message_seconds(const std::vector<LinkTiming>& timings, double bytes);

// What crosses the link in a decode step, and how long a step must take for a split over two equal
// devices to be faster than one device.
struct SplitCost {
  double pipeline_seconds = 0;  // the hidden rows, once
  double tensor_seconds = 0;    // a sum of the embedding, two sums per layer, half of the logits
  double sequence_seconds = 0;  // a merge per layer
  // A pipeline of two halves the time of a step whose parts overlap; a tensor split halves all of
  // it. So each pays once a step takes longer than twice what it adds.
  double pipeline_pays_above() const { return 2 * 2 * pipeline_seconds; }  // two parts cross
  double tensor_pays_above() const { return 2 * tensor_seconds; }
  // By sequence, only attention to the KV cache takes half of its time: this is what it must take.
  double sequence_pays_above() const { return 2 * sequence_seconds; }
};
struct SplitSizes {
  uint32_t rows = 1;  // sequences in the step
  uint32_t width = 0, layers = 0, vocabulary = 0;
  uint32_t heads = 0, head_size = 0;
};
SplitCost split_cost(const std::vector<LinkTiming>& timings, const SplitSizes& sizes);

}  // namespace hearth
