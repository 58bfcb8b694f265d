// RMS norm: y[r, i] = x[r, i] / sqrt(mean over i of x[r, i]^2 + epsilon) * weight[i]
//
// A workgroup a row: groups = [rows, 1, 1]. Any width; rows whose width is a multiple of 4 are read
// in vec4, and then the three addresses must be multiples of 16. y may be x.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "common/reduce.glsl"
#include "params/rms_norm.h"

layout(local_size_x_id = 0) in;

void main() {
  const uint row = gl_WorkGroupID.x;
  const uint lane = gl_LocalInvocationID.x;
  const uint lanes = gl_WorkGroupSize.x;
  const bool wide = params.width % 4 == 0;
  const uint64_t row_bytes = uint64_t(row) * params.width * 4;

  float squares = 0.0;
  if (wide) {
    F32x4 x = F32x4(params.x + row_bytes);
    for (uint i = lane; i < params.width / 4; i += lanes) squares += dot(x.at[i], x.at[i]);
  } else {
    F32 x = F32(params.x + row_bytes);
    for (uint i = lane; i < params.width; i += lanes) squares += x.at[i] * x.at[i];
  }
  const float scale = inversesqrt(group_add(squares) / float(params.width) + params.epsilon);

  if (wide) {
    F32x4 x = F32x4(params.x + row_bytes);
    F32x4 y = F32x4(params.y + row_bytes);
    F32x4 weight = F32x4(params.weight);
    for (uint i = lane; i < params.width / 4; i += lanes) y.at[i] = x.at[i] * scale * weight.at[i];
  } else {
    F32 x = F32(params.x + row_bytes);
    F32 y = F32(params.y + row_bytes);
    F32 weight = F32(params.weight);
    for (uint i = lane; i < params.width; i += lanes) y.at[i] = x.at[i] * scale * weight.at[i];
  }
}
