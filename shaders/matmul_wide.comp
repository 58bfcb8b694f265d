// Matrix times many vectors on VK_KHR_cooperative_matrix: f16 operands, f32 sums. The formula is in
// params/matmul.h; x is f16, as half_rows writes it. For devices whose lanes hold fragments as
// common/fragment_lanes.glsl describes.
//
// A workgroup computes a tile of kTileRows x kTileOutputs sums, each subgroup kSubgroupRows x
// kSubgroupOutputs of them, in steps of kStep along k. Both operands go through shared memory in
// fragment order, swizzled rather than padded, so that tiles can fill the 48 KB of shared memory. Large
// products are limited by the L2 cache, and larger tiles read less from it. A step's operands are loaded
// into registers while the step before it is multiplied, and then written to shared memory. By that time
// every subgroup has the last fragments along k in registers; half of their products are done between
// the two barriers around the write, and half after them.
// kSplits, kTailSplits and kGate work as in matmul_coopmat. kInputs saves address arithmetic if every
// tile is whole.
//   workgroups = [ceil(rows / kTileRows), ceil(outputs / kTileOutputs), kSplits]; with kTailSplits > 1
//                [whole tiles + kTailSplits * tail tiles, 1, 1]
// REQUIRES: inputs a multiple of kStep and of the format's block, addresses multiples of 16, full
// subgroups of 32; kSubgroupRows and kSubgroupOutputs multiples of 16; kSplits or kTailSplits is 1, and
// neither is larger than the number of steps.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#include "common/matmul_wide.glsl"
