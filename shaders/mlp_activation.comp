// Gated MLP activation: y[r, i] = act(gate[r, i]) * up[r, i]
//   kActivation 0: SiLU, 1: GELU by tanh (common/activation.glsl)
//
// An invocation processes kUnroll quads (elements if width is not a multiple of 4), local size apart:
//   workgroups = [ceil(quads / (local size * kUnroll)), rows, 1]
// y may be gate or up if stride == width. REQUIRES: if width is a multiple of 4, so is stride, and
// addresses are multiples of 16.
// kForm is the form of y (common/row_form.glsl). REQUIRES for f16: width a multiple of 8, y neither gate
// nor up.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "common/activation.glsl"
#include "common/row_form.glsl"
#include "params/mlp_activation.h"
#include "common/chain.glsl"

const bool kGelu = kActivation != 0;

void activate_rows() {
  const uint row = gl_WorkGroupID.y;
  const uint64_t offset = uint64_t(row) * params.stride * 4;
  const uint64_t y_row = params.y + uint64_t(row) * params.width * 4;
  const uint first = gl_WorkGroupID.x * gl_WorkGroupSize.x * kUnroll + gl_LocalInvocationID.x;
  if (params.width % 4 == 0) {
    F32x4 gate = F32x4(params.gate + offset), up = F32x4(params.up + offset);
    [[unroll]] for (uint step = 0; step < kUnroll; ++step) {
      const uint i = first + step * gl_WorkGroupSize.x;
      const uint quads = params.width / 4;
      if (i < quads) {
        const vec4 value = activate(gate.at[i], kGelu) * up.at[i];
        if (kForm == kFormHalves) {
          write_halves(params.y, row * quads + i, value);
        } else {
          F32x4(y_row).at[i] = value;
        }
      }
    }
  } else {
    F32 gate = F32(params.gate + offset), up = F32(params.up + offset);
    [[unroll]] for (uint step = 0; step < kUnroll; ++step) {
      const uint i = first + step * gl_WorkGroupSize.x;
      if (i < params.width) F32(y_row).at[i] = activate(gate.at[i], kGelu) * up.at[i];
    }
  }
}

void main() {
  chain_wait();
  activate_rows();
  chain_done();
}
