// Multiplies two fragments filled from registers and writes the product twice: with coopMatStore, and
// as each lane holds it. Both are right if lanes hold fragments as common/fragment_lanes.glsl describes.
//   workgroups = [1, 1, 1], of one subgroup of 32
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "common/kernel.glsl"
#include "params/fragment_lanes.h"
#include "common/fragment_lanes.glsl"

layout(local_size_x = 32) in;

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Quads { uvec2 at[]; };

void main() {
  // Four neighbouring inputs per lane, not the inputs that the layout assigns to it: see
  // fragment_lanes.glsl.
  const uint row = gl_SubgroupInvocationID / 4, quad = gl_SubgroupInvocationID % 4;
  FragmentA x;
  FragmentB w;
  set_a(x, words_of_a(Quads(params.x).at[row * 4 + quad], Quads(params.x).at[(row + 8) * 4 + quad]));
  set_b(w, Quads(params.weight).at[row * 4 + quad]);
  Fragment sums = coopMatMulAdd(x, w, Fragment(0.0));
  coopMatStore(sums, F32x4(params.y).at, 0, 2, gl_CooperativeMatrixLayoutRowMajor);
  vec4 elements = vec4(-1.0);  // no sum is negative
  if (sums.length() == 4) elements = vec4(sums[0], sums[1], sums[2], sums[3]);
  F32x4(params.y).at[32 + gl_SubgroupInvocationID] = elements;
}
