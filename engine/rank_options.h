// The ranks that a session runs on (engine/ranks).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/ranks/link.h"

namespace hearth {

// How a model is divided: each rank has some of the layers, a share of every layer, or all weights
// and some blocks of the KV cache.
enum class RankSplit : uint8_t { kLayers, kTensor, kSequence };

struct RankOptions {
  RankSplit split = RankSplit::kLayers;
  std::vector<std::string> devices;  // one per rank, as -d takes it; empty: every rank as -d says
  std::vector<uint32_t> layers;      // kLayers: one number per rank; empty: by their memory
  std::shared_ptr<Link> link;  // to ranks in other processes; null: they are threads of this one
  uint32_t ranks_here = 1;     // ranks on this machine, if they are processes
  uint32_t parts = 0;          // that a step is divided into; 0: as suits the devices
  // kTensor: rows from which on a step's rows are divided between sums; 0: never; empty: measured.
  std::optional<uint32_t> divided_rows = {};

  bool several() const { return link != nullptr || devices.size() > 1; }
  uint32_t count() const {
    return link != nullptr ? link->ranks()
                           : std::max<uint32_t>(1, static_cast<uint32_t>(devices.size()));
  }
  // The device of a rank; `otherwise` is what -d says.
  const std::string& device(uint32_t rank, const std::string& otherwise) const {
    return rank < devices.size() ? devices[rank] : otherwise;
  }
  // How many ranks share the memory of this rank's device.
  uint32_t sharing(uint32_t rank) const {
    if (rank >= devices.size()) return std::max(1u, ranks_here);
    return static_cast<uint32_t>(std::ranges::count(devices, devices[rank]));
  }
};

}  // namespace hearth
