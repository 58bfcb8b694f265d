// Converts rows of x to f16 for kernels on matrix units: y[r, i] = x[r, i], clamped to the range of f16.
//
// One invocation per vec of eight elements: workgroups = [ceil(width / (8 * local size)), rows, 1].
// REQUIRES: width a multiple of 8, addresses multiples of 16.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "common/halves.glsl"
#include "params/half_rows.h"
#include "common/chain.glsl"

void convert_row() {
  const uint row_vecs = params.width / kVecHalves;
  if (gl_GlobalInvocationID.x >= row_vecs) return;
  const uint i = gl_WorkGroupID.y * row_vecs + gl_GlobalInvocationID.x;
  F32x4 x = F32x4(params.x);
  U32x4(params.y).at[i] = pack_halves(nearest_half(x.at[2 * i]), nearest_half(x.at[2 * i + 1]));
}

void main() {
  chain_wait();
  convert_row();
  chain_done();
}
