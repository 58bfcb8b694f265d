// The sequences that share blocks, drawn as a tree.
#pragma once

#include "ui/panel.h"

namespace hearth {

// One row per sequence, one column per block of it; a shared block spans the rows that share it.
void draw_block_tree(const PanelContext& context);

}  // namespace hearth
