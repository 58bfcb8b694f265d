#include "engine/ranks/layer_split.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace hearth {
namespace {

Result<std::vector<LayerRange>> chosen_ranges(const SplitRequest& request) {
  const size_t ranks = request.room_bytes.size(), layers = request.layer_bytes.size();
  const uint64_t sum = std::accumulate(request.layers.begin(), request.layers.end(), uint64_t{0});
  if (request.layers.size() != ranks || sum != layers ||
      std::ranges::find(request.layers, 0u) != request.layers.end())
    return invalid(fmt::format(
        "--layers needs one number per rank, each at least 1: {} numbers that add up to {} layers",
        ranks, layers));
  std::vector<LayerRange> ranges;
  uint32_t first = 0;
  for (const uint32_t count : request.layers) {
    ranges.push_back({.first = first, .last = first + count});
    first += count;
  }
  return ranges;
}

}  // namespace

Result<std::vector<LayerRange>> split_layers(const SplitRequest& request) {
  const size_t ranks = request.room_bytes.size(), layers = request.layer_bytes.size();
  if (ranks > layers)
    return invalid(
        fmt::format("a model of {} layers cannot be divided over {} ranks", layers, ranks));
  if (!request.layers.empty()) return chosen_ranges(request);

  // bytes_before[i]: of everything before a boundary in front of layer i.
  std::vector<double> bytes_before{0};
  double sum = static_cast<double>(request.input_bytes);
  for (const uint64_t bytes : request.layer_bytes)
    bytes_before.push_back(sum += static_cast<double>(bytes));
  const double total = sum + static_cast<double>(request.output_bytes);
  double room = 0;
  for (const uint64_t bytes : request.room_bytes) room += static_cast<double>(bytes);

  std::vector<LayerRange> ranges;
  uint32_t first = 0;
  double share = 0;
  for (size_t rank = 0; rank < ranks; ++rank) {
    share += room > 0 ? static_cast<double>(request.room_bytes[rank]) / room
                      : 1.0 / static_cast<double>(ranks);
    // The boundary that is nearest, with a layer left for each rank behind it.
    const auto most = static_cast<uint32_t>(layers - (ranks - 1 - rank));
    uint32_t last = first + 1;
    while (last < most && std::abs(bytes_before[last + 1] - share * total) <=
                              std::abs(bytes_before[last] - share * total))
      ++last;
    if (rank + 1 == ranks) last = static_cast<uint32_t>(layers);
    ranges.push_back({.first = first, .last = last});
    first = last;
  }
  return ranges;
}

}  // namespace hearth
