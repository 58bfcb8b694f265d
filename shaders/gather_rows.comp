// Copies rows: y[r] = x[indices[r]]
//
// An index of source_rows or more, such as kNoSequence, leaves its row of y unchanged. One invocation
// per quad (per element if width is not a multiple of 4):
//   workgroups = [ceil(quads / local size), rows, 1]
// REQUIRES: x and y do not overlap; if width is a multiple of 4, addresses are multiples of 16.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "params/gather_rows.h"
#include "common/chain.glsl"

void gather() {
  const uint i = gl_GlobalInvocationID.x;
  const uint from = U32(params.indices).at[gl_WorkGroupID.y];
  if (from >= params.source_rows) return;
  const uint64_t x_row = params.x + uint64_t(from) * params.width * 4;
  const uint64_t y_row = params.y + uint64_t(gl_WorkGroupID.y) * params.width * 4;
  if (params.width % 4 == 0) {
    if (i < params.width / 4) F32x4(y_row).at[i] = F32x4(x_row).at[i];
  } else {
    if (i < params.width) F32(y_row).at[i] = F32(x_row).at[i];
  }
}

void main() {
  chain_wait();
  gather();
  chain_done();
}
