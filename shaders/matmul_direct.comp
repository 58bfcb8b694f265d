// Matrix times a few vectors on VK_KHR_cooperative_matrix: f16 operands, f32 sums. The formula is in
// params/matmul.h; x is f16, as half_rows makes it. For devices whose lanes hold fragments as
// common/fragment_lanes.glsl says.
//
// A group computes a tile of kTileRows x kTileOutputs sums, kSubgroupOutputs of each row a subgroup,
// walking along k in blocks. A weight is multiplied by one subgroup only, so its lanes load weights
// from memory, decode them where they are, and make fragments of them. What all subgroups multiply is
// x: it goes through shared memory, in the order of fragments. The operands of the next block are on
// their way while one is multiplied. With kSplits > 1 the groups of one tile share k between them, and
// leave their sums as matmul_coopmat does; with kGate half of the outputs are gates of the others.
//   groups = [ceil(rows / kTileRows), ceil(outputs / kTileOutputs), kSplits]
// REQUIRES: inputs a multiple of kBlock, addresses multiples of 16, full subgroups of 32; kTileRows a
// multiple of 16, kSubgroupOutputs of 8; no more splits than blocks.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#include "common/matmul_direct.glsl"
