// What the KV blocks panel says about the block under the mouse.
#pragma once

#include <cstddef>

#include "ui/data/block_map.h"
#include "ui/feeds/engine_view.h"

namespace hearth {

// REQUIRES: `index` is a block of the view's snapshot.
void draw_block_tooltip(const EngineView& view, const BlockMap& map, size_t index);

}  // namespace hearth
