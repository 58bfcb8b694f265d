// Adds up what the groups of a split matmul_tile left: sum over splits of partial[split, row, output],
// and does to the sum what params/matmul.h says. An invocation an element.
//   groups = [ceil(rows * outputs / group size), 1, 1];  x is partial, [splits, rows, outputs] f32
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "params/matmul.h"
#include "common/matmul_output.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint kSplits = 2;

void main() {
  const uint count = params.rows * params.outputs;
  const uint place = gl_GlobalInvocationID.x;
  if (place >= count) return;
  F32 partial = F32(params.x);
  float sum = 0.0;
  [[unroll]] for (uint s = 0; s < kSplits; ++s) sum += partial.at[s * count + place];
  store_output(place / params.outputs, place % params.outputs, sum);
}
