// Matrix times a few vectors on VK_KHR_cooperative_matrix: f16 operands, f32 sums. The formula is in
// params/matmul.h; x is f16, as half_rows writes it. For devices whose lanes hold fragments as
// common/fragment_lanes.glsl describes.
//
// A workgroup computes a tile of kTileRows x kTileOutputs sums, each subgroup kSubgroupOutputs of every
// row, in steps of kStep inputs along k. Only one subgroup needs a given weight, so its lanes load
// weights straight from memory, decode them in registers and form fragments. All subgroups need x, so
// x goes through shared memory, in fragment order. The next step's operands are in flight while one
// step is multiplied. kSplits > 1 is split-k, with partial sums as in matmul_coopmat; with kGate one
// half of the outputs are gates for the other half.
//   workgroups = [ceil(rows / kTileRows), ceil(outputs / kTileOutputs), kSplits]
// REQUIRES: inputs a multiple of kStep (of experts' products: of a chunk), addresses multiples of 16,
// full subgroups of 32; kTileRows a multiple of 16, kSubgroupOutputs of 8; kSplits at most the number of
// steps.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#include "common/matmul_direct.glsl"
