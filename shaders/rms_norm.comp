// RMS norm, optionally after adding residuals, which may be the partial sums of a split-k matmul:
//   x[r, i] += sum over s < kResiduals of residual[s, r, i]
//   y[r, i] = x[r, i] / sqrt(mean over i of x[r, i]^2 + epsilon) * weight[i]
//
// One workgroup per row: workgroups = [rows, 1, 1]. Any width. If width is a multiple of 4, rows are
// read in quads, and addresses must be multiples of 16 and strides multiples of 4. y may be x or the
// residual.
// kRegisterQuads > 0: each invocation holds its quads of the row in registers instead of reading them
// twice. REQUIRES: width a multiple of 4 and at most 4 * kRegisterQuads * local size.
// kWriteScales: each row's 1 / sqrt(...) is also written to params.scales.
// kForm is the form of y (common/row_form.glsl). REQUIRES for f16: width a multiple of 8, y neither x nor
// the residual.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "common/reduce.glsl"
#include "common/row_form.glsl"
#include "params/rms_norm.h"
#include "common/chain.glsl"

void store_quad(F32x4 y, uint i, vec4 value) {
  const uint quads = params.width / 4;
  if (kForm == kFormHalves) {
    write_halves(params.y, gl_WorkGroupID.x * quads + i, value);
  } else {
    y.at[i] = value;
  }
}

// The sum of the residuals, of a quad or of an element.
vec4 addend_quad(FreshF32x4 residual, uint i) {
  vec4 partials[kResiduals + 1];  // an array has at least one element
  [[unroll]] for (uint s = 0; s < kResiduals; ++s) partials[s] = residual.at[s * (params.partial_stride / 4) + i];
  vec4 sum = partials[0];
  [[unroll]] for (uint s = 1; s < kResiduals; ++s) sum += partials[s];
  return sum;
}

float addend(F32 residual, uint i) {
  float sum = 0.0;
  for (uint s = 0; s < kResiduals; ++s) sum += residual.at[s * params.partial_stride + i];
  return sum;
}

float norm_scale(float squares) {
  const float scale = inversesqrt(workgroup_add(squares) / float(params.width) + params.epsilon);
  if (kWriteScales != 0 && gl_LocalInvocationIndex == 0)
    F32(params.scales).at[gl_WorkGroupID.x] = scale;
  return scale;
}

void norm_in_registers(FreshF32x4 x, FreshF32x4 residual, F32x4 y) {
  const uint lane = gl_LocalInvocationID.x;
  const uint lanes = gl_WorkGroupSize.x;
  const uint quads = params.width / 4;
  F32x4 weight = F32x4(params.weight);
  // Arrays need at least one element, hence the + 1.
  vec4 kept[kRegisterQuads + 1], weights[kRegisterQuads + 1];
  [[unroll]] for (uint k = 0; k < kRegisterQuads; ++k) {
    const uint i = lane + k * lanes;
    weights[k] = i < quads ? weight.at[i] : vec4(0.0);
  }
  chain_wait_fresh();
  [[unroll]] for (uint k = 0; k < kRegisterQuads; ++k) {
    const uint i = lane + k * lanes;
    kept[k] = i < quads ? x.at[i] : vec4(0.0);
    if (kResiduals != 0 && i < quads) kept[k] += addend_quad(residual, i);
  }
  float squares = 0.0;
  [[unroll]] for (uint k = 0; k < kRegisterQuads; ++k) {
    const uint i = lane + k * lanes;
    if (kResiduals != 0 && i < quads) F32x4(uint64_t(x)).at[i] = kept[k];  // fresh views are read-only
    squares += dot(kept[k], kept[k]);
  }
  const float scale = norm_scale(squares);
  [[unroll]] for (uint k = 0; k < kRegisterQuads; ++k) {
    const uint i = lane + k * lanes;
    if (i < quads) store_quad(y, i, kept[k] * scale * weights[k]);
  }
}

void norm_by_quads(F32x4 x, FreshF32x4 residual, F32x4 y) {
  float squares = 0.0;
  for (uint i = gl_LocalInvocationID.x; i < params.width / 4; i += gl_WorkGroupSize.x) {
    vec4 quad = x.at[i];
    if (kResiduals != 0) {
      quad += addend_quad(residual, i);
      x.at[i] = quad;
    }
    squares += dot(quad, quad);
  }
  const float scale = norm_scale(squares);
  F32x4 weight = F32x4(params.weight);
  for (uint i = gl_LocalInvocationID.x; i < params.width / 4; i += gl_WorkGroupSize.x)
    store_quad(y, i, x.at[i] * scale * weight.at[i]);
}

void norm_by_elements(F32 x, F32 residual, F32 y) {
  float squares = 0.0;
  for (uint i = gl_LocalInvocationID.x; i < params.width; i += gl_WorkGroupSize.x) {
    float value = x.at[i];
    if (kResiduals != 0) {
      value += addend(residual, i);
      x.at[i] = value;
    }
    squares += value * value;
  }
  const float scale = norm_scale(squares);
  F32 weight = F32(params.weight);
  for (uint i = gl_LocalInvocationID.x; i < params.width; i += gl_WorkGroupSize.x)
    y.at[i] = x.at[i] * scale * weight.at[i];
}

void main() {
  const uint64_t row_bytes = uint64_t(gl_WorkGroupID.x) * params.width * 4;
  const uint64_t x = params.x + row_bytes;
  const uint64_t residual =
      params.residual + uint64_t(gl_WorkGroupID.x) * params.residual_stride * 4;
  const uint64_t y = params.y + row_bytes;
  if (kRegisterQuads > 0) {
    norm_in_registers(FreshF32x4(x), FreshF32x4(residual), F32x4(y));  // waits after loading the weights
  } else {
    chain_wait();
    if (params.width % 4 == 0) {
      norm_by_quads(F32x4(x), FreshF32x4(residual), F32x4(y));
    } else {
      norm_by_elements(F32(x), F32(residual), F32(y));
    }
  }
  chain_done();
}
