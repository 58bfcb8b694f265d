// Mixes the logits of some rows with those of other rows, before they are sampled:
//
//   logit[r, v] = own_weight * own + other_weight * other   if own >= largest own logit + log_plausible
//               = -infinity                                 otherwise, or if own or other is -infinity
//
// NaN in own or other gives NaN, which sampling reports. Rows without kSamplingMix are left unchanged;
// `other` must be such a row, or one of another model.
//
// workgroups = [any number, rows, 1]. Those of a row share it, unless log_plausible needs the largest
// logit first: then one workgroup does all of it, because the others would change what it reads.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "params/mix_logits.h"
#include "common/sampling_key.glsl"
#include "common/sampling_reduce.glsl"
#include "common/sampling_views.glsl"
#include "common/chain.glsl"

// The smallest own logit of a plausible token.
float least_plausible(SamplingRow row, uint64_t own) {
  uint largest = 0;
  const uint quads = (params.vocab + 3) / 4;
  for (uint quad = gl_LocalInvocationID.x; quad < quads; quad += gl_WorkGroupSize.x) {
    const uvec4 keys = quad_keys(load_quad(own, quad, params.vocab));
    largest = max(largest, max(max(keys.x, keys.y), max(keys.z, keys.w)));
  }
  largest = workgroup_max(largest);
  return largest > kMinusInfinityKey ? key_logit(largest) + row.log_plausible : 0.0;
}

uint mix_bits(SamplingRow row, uint own, uint other, float least) {
  if (is_nan(own) || is_nan(other)) return 0x7fc00000u;
  if (own == kMinusInfinityBits || other == kMinusInfinityBits || uintBitsToFloat(own) < least)
    return kMinusInfinityBits;
  precise const float mixed =
      row.own_weight * uintBitsToFloat(own) + row.other_weight * uintBitsToFloat(other);
  return floatBitsToUint(mixed);
}

void mix_row(SamplingRow row) {
  const bool whole = row.log_plausible > uintBitsToFloat(kMinusInfinityBits);
  const uint groups = whole ? 1 : gl_NumWorkGroups.x;
  if ((row.flags & kSamplingMix) == 0 || gl_WorkGroupID.x >= groups) return;
  const uint64_t row_bytes = uint64_t(params.vocab) * 4;
  const uint64_t own = params.logits + gl_WorkGroupID.y * row_bytes;
  const bool is_other_model = (row.other_row & kOtherModel) != 0;
  const uint64_t other = (is_other_model ? params.other_logits : params.logits) +
                         (row.other_row & ~kOtherModel) * row_bytes;
  float least = uintBitsToFloat(kMinusInfinityBits);
  if (whole) {
    least = least_plausible(row, own);
    barrier();  // all lanes have read the row
  }
  for (uint v = gl_WorkGroupID.x * gl_WorkGroupSize.x + gl_LocalInvocationID.x; v < params.vocab;
       v += groups * gl_WorkGroupSize.x)
    U32(own).at[v] = mix_bits(row, U32(own).at[v], U32(other).at[v], least);
}

void main() {
  const SamplingRow row = SamplingRows(params.rows).at[gl_WorkGroupID.y];
  chain_wait();
  mix_row(row);
  chain_done();
}
