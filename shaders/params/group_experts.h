#ifndef HEARTH_PARAMS_GROUP_EXPERTS_H
#define HEARTH_PARAMS_GROUP_EXPERTS_H
#include "common/interop.h"
#include "params/expert_tiles.h"

HEARTH_PARAMS(GroupExperts)
  reads_address chosen;    // [pairs] u32: the expert of each pair
  reads_address weights;   // [pairs] f32
  writes_address tiles;    // [tile_count] u32: the expert of each tile, or kNoExpert
  writes_address sources;  // [positions] u32: the row of x of each position
  writes_address scales;   // [positions] f32: the weight of each position, 0 for padding
  writes_address places;   // [pairs] u32: the position of each pair
  uint pairs;
  uint row_pairs;          // pairs of a row
  uint tile_rows;
  uint tile_count;         // room for tiles; positions = tile_count * tile_rows
HEARTH_PARAMS_END

HEARTH_CONSTANTS(GroupExperts)
  HEARTH_WORKGROUP_SIZE
  HEARTH_UINT(1, kExperts, 8)
HEARTH_CONSTANTS_END

#endif
