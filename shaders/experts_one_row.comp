// The products of a mixture of experts (params/experts.h) for a step of one row, on
// VK_KHR_cooperative_matrix: f16 operands, f32 sums. Without gates it adds up the row's experts:
//   y[n] += sum over p of (sum over k of weight[expert(p), n, k] * x[p, k] + bias[expert(p), n]) * scale[p]
// For devices whose lanes hold fragments as common/fragment_lanes.glsl describes.
//
// The subgroups of a workgroup split k, and each holds its part of x in registers. A round has eight
// results: of one expert, whose gates are the upper and whose ups the lower rows of a fragment; or, without
// gates, of all experts, two at a time, of which one has the upper rows and the even columns, where x is
// its own, and the other the lower rows and the odd columns. kAhead rounds (or pairs of experts) are in
// flight. Sums stay in shared memory until the end, so subgroups never wait for each other in between.
// With gates x is f32, normed here if kNorm is set, and the experts are chosen here; without, x is f16.
//   workgroups = [1, at most as many as there are rounds, 1]
// REQUIRES: kInputs a multiple of 32, kResults of 8, at most kRounds rounds per workgroup, full subgroups
// of 32.
#version 460
#extension GL_GOOGLE_include_directive : require
#ifndef EMULATE_FRAGMENTS
#extension GL_KHR_cooperative_matrix : require
#endif
#define EXPERTS
#include "common/experts_one_row.glsl"
