// Rows of a tree of proposed tokens, for kernels that are compiled with TREE_ROWS.
//
// A row's ancestor mask has a bit for each tree row of its sequence that is on its path, itself included;
// its own bit is the highest. 0: the row is not in a tree. Tree row i is at position first + i of the
// cache, where `first` is the position after the last token before the tree, but for rope and windows it
// is at first + the number of its ancestors.
#ifndef HEARTH_TREE_ROWS_GLSL
#define HEARTH_TREE_ROWS_GLSL

// The cache position of a tree's first row. REQUIRES: mask != 0.
uint tree_begin(uint mask, uint cache_position) { return cache_position - findMSB(mask); }

// The position of a row in its own path.
uint path_position(uint mask, uint cache_position) {
  return mask == 0 ? cache_position : tree_begin(mask, cache_position) + bitCount(mask) - 1;
}

#endif
