// Matrix times many vectors on VK_KHR_cooperative_matrix: f16 operands, f32 sums. The formula is in
// params/matmul.h; x is f16, as half_rows makes it. For devices whose lanes hold fragments as
// common/fragment_lanes.glsl says.
//
// A group computes a tile of kTileRows x kTileOutputs sums, kSubgroupRows x kSubgroupOutputs a
// subgroup, walking along k in steps of kStep. Both operands go through shared memory, in the order
// of fragments, which needs no padding: so tiles are as large as 48 KB allow, and what large products
// wait for, the second-level cache, has the fewest bytes to bring. A step's operands are on their way
// from its beginning, while those before it are multiplied, to its end, when they are stored. Of the
// last fragments along k, which every subgroup has in registers by then, half of the products are
// done between the two barriers around that, and half after them.
// kSplits, kTailSplits and kGate are as in matmul_coopmat. kInputs spares addresses where every tile is whole.
//   groups = [ceil(rows / kTileRows), ceil(outputs / kTileOutputs), kSplits]; with kTailSplits > 1
//            [whole tiles + kTailSplits * shared tiles, 1, 1]
// REQUIRES: inputs a multiple of kStep and of the format's block, addresses multiples of 16, full
// subgroups of 32; kSubgroupRows and kSubgroupOutputs multiples of 16; kSplits or kTailSplits is 1, and
// neither more than there are steps.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#include "common/matmul_wide.glsl"
