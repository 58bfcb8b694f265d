// Matrix times two to sixteen vectors on VK_KHR_cooperative_matrix: f16 operands, f32 sums. The formula
// is in params/matmul.h; x is f16, as half_rows writes it. For devices whose lanes hold fragments as
// common/fragment_lanes.glsl describes.
//
// The subgroups of a workgroup are a team: they split k, so each holds its part of x in registers
// throughout, and the loop loads only weights. In a round they compute sums of 16 outputs, or of 8 gates
// and their ups, and write them to shared memory, where a few subgroups, taking turns, add them up and
// store the results. As soon as weights have been multiplied, the next round's are loaded into the same
// registers; the first round's are in flight before this kernel waits for x. kSplits > 1 splits k over
// several workgroups as well, with partial sums as in matmul_coopmat. With kNorm it starts the RMS norm
// that follows it, or finishes the one before it (common/matmul_norm.glsl).
//   workgroups = [1, ceil(results / (kRounds * kRoundResults)), kSplits]
// REQUIRES: at most 8 * kColumns rows, kInputs a multiple of kStep, kSubgroups >= 2 * kColumns, gates and
// norms only with kSplits == 1, addresses multiples of 16, full subgroups of 32.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#include "common/matmul_team.glsl"
