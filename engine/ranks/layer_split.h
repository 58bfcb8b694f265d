// Which rank of a pipeline holds which layers. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/layer_range.h"
#include "runtime/result.h"

namespace hearth {

struct SplitRequest {
  // What each part of the model takes on a device: weights, and KV memory per block, alike.
  std::vector<uint64_t> layer_bytes;           // per layer
  uint64_t input_bytes = 0, output_bytes = 0;  // with the first layer; with the last
  std::vector<uint64_t> room_bytes;            // per rank: free memory
  std::vector<uint32_t> layers;                // per rank, if the user chose; else empty
};

// Ranks that are all CPUs share the memory of their machines, so that only time matters to them,
// and an embedding takes none.
inline void balance_time(SplitRequest& request) { request.input_bytes = 0; }

// Consecutive ranges, one per rank, each with at least one layer. Without the user's choice, each
// rank's share of the weights is as close as possible to its share of the memory, which also leaves
// room for the most KV blocks.
Result<std::vector<LayerRange>> split_layers(const SplitRequest& request);

}  // namespace hearth
