// Matrix times two to sixteen vectors on VK_KHR_cooperative_matrix: f16 operands, f32 sums. The formula is
// in params/matmul.h; x is f16, as half_rows makes it. For devices whose lanes hold fragments as
// common/fragment_lanes.glsl says.
//
// The subgroups of a group share k out, so that each has its part of x in registers and keeps it there:
// what is loaded in the loop is weights. In a round they compute sums of 16 outputs, or of 8 gates and
// their ups, and leave them in shared memory, where a few of them, in turn, add them up and store them.
// As soon as weights are multiplied the next round's are under way into the same registers, and the
// first round's are before this kernel waits for x. With kSplits > 1 several groups share k between
// them, and leave their sums as matmul_coopmat does. With kNorm it begins the norm after it, or ends the
// one before it (common/matmul_norm.glsl).
//   groups = [1, ceil(results / (kRounds * kRoundResults)), kSplits]
// REQUIRES: at most 8 * kColumns rows, kInputs a multiple of kBlock, kSubgroups >= 2 * kColumns, gates and
// norms only with kSplits == 1, addresses multiples of 16, full subgroups of 32.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#include "common/matmul_team.glsl"
