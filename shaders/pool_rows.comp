// Adds up ranges of rows, for embeddings: y[i] = sum of x[r] over the rows r of ranges[i]
//
// A range of 0 rows leaves its row of y unchanged. One invocation per column:
//   workgroups = [ceil(width / local size), ranges, 1]
// REQUIRES: x and y do not overlap. Rows beyond the last of x count as zeros.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "params/pool_rows.h"
#include "common/chain.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer PoolRanges {
  PoolRange at[];
};

void pool() {
  const PoolRange range = PoolRanges(params.ranges).at[gl_WorkGroupID.y];
  const uint column = gl_GlobalInvocationID.x;
  if (range.rows == 0 || column >= params.width) return;
  const uint end = min(range.first_row + range.rows, params.rows);
  float sum = 0;
  for (uint row = range.first_row; row < end; ++row)
    sum += F32(params.x + uint64_t(row) * params.width * 4).at[column];
  F32(params.y + uint64_t(gl_WorkGroupID.y) * params.width * 4).at[column] = sum;
}

void main() {
  chain_wait();
  pool();
  chain_done();
}
