// The part of the KV cache that is not in the pool: blocks of swapped sequences, in host memory.
#pragma once

#include "ui/panel.h"

namespace hearth {

// One line of cells in the colours of the swapped sequences, as wide as the window allows; nothing
// if the engine does not swap.
void draw_host_blocks(const PanelContext& context);

// What to say about a policy that keeps no KV cache at all; null: it keeps one.
const char* no_cache_words(const EngineView& view);

}  // namespace hearth
