// The layers that a device holds: [first, last). By default all of them.
#pragma once

#include <cstdint>

namespace hearth {

struct LayerRange {
  uint32_t first = 0;
  uint32_t last = UINT32_MAX;

  bool operator==(const LayerRange&) const = default;
};

}  // namespace hearth
