// Keeps hidden states for later steps, each divided by its length:
//   page row of places[r] = f16(x[r] / sqrt(sum over i of x[r, i]^2))
// and copies those that were kept before:
//   page row of places[r].to = page row of places[r].from
//
// A row of zeros stays zeros. Rows with kNotKept are not kept. One workgroup per row:
//   workgroups = [rows, 1, 1]
// REQUIRES: width is a multiple of 8, no position is written twice, or written and read.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "common/reduce.glsl"
#include "params/keep_hidden.h"
#include "common/chain_state.glsl"
#include "common/hidden_pages.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer HiddenPlaces {
  HiddenPlace at[];
};

void copy(HiddenPlace place) {
  if (place.from == 0) return;
  U32x4 from = U32x4(hidden_row(place.slot, place.from)), to = U32x4(hidden_row(place.slot, place.to));
  for (uint i = gl_LocalInvocationID.x; i < params.width / 8; i += gl_WorkGroupSize.x) to.at[i] = from.at[i];
}

void keep(HiddenPlace place) {
  if (place.position == kNotKept) return;
  F32x4 x = F32x4(params.x + uint64_t(gl_WorkGroupID.x) * params.width * 4);
  float squares = 0.0;
  for (uint i = gl_LocalInvocationID.x; i < params.width / 4; i += gl_WorkGroupSize.x)
    squares += dot(x.at[i], x.at[i]);
  squares = workgroup_add(squares);
  const float scale = squares > 0.0 ? inversesqrt(squares) : 0.0;
  // Loads from addresses that are uniform in a subgroup may be executed although the row is skipped.
  const uint position = place.position == kNotKept ? 0 : place.position;
  U32x4 kept = U32x4(hidden_row(place.slot, position));
  for (uint i = gl_LocalInvocationID.x; i < params.width / 8; i += gl_WorkGroupSize.x) {
    const vec4 low = x.at[2 * i] * scale, high = x.at[2 * i + 1] * scale;
    kept.at[i] = uvec4(packHalf2x16(low.xy), packHalf2x16(low.zw), packHalf2x16(high.xy),
                       packHalf2x16(high.zw));
  }
}

void main() {
  if (chain_wait_intact()) {
    const HiddenPlace place = HiddenPlaces(params.places).at[gl_WorkGroupID.x];
    copy(place);
    keep(place);
  }
  chain_done();
}
