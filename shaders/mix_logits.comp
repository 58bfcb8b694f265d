// Mixes the logits of some rows with those of other rows, before they are sampled:
//
//   logit[r, v] = own_weight * own + other_weight * other   if own >= largest own logit + log_plausible
//               = -infinity                                 otherwise, or if own or other is -infinity
//
// Tokens outside the row's mask, or with a bias of -infinity, do not count for the largest own logit.
// Otherwise the only plausible tokens might be ones that may not be sampled.
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

// Bans tokens here already, as sampling would after the mixing.
void ban(SamplingRow row, uint64_t own) {
  for (uint i = gl_LocalInvocationID.x; i < row.bias_count; i += gl_WorkGroupSize.x) {
    const TokenBias bias = TokenBiases(params.biases).at[row.bias_offset + i];
    if (floatBitsToUint(bias.bias) == kMinusInfinityBits && !is_nan(U32(own).at[bias.token]))
      U32(own).at[bias.token] = kMinusInfinityBits;
  }
  memoryBarrierBuffer();
  barrier();
}

// -infinity for those of four logits that are not among the allowed ones; NaN stays.
uvec4 allow(uvec4 bits, uint allowed) {
  [[unroll]] for (uint c = 0; c < 4; ++c)
    if ((allowed >> c & 1) == 0 && !is_nan(bits[c])) bits[c] = kMinusInfinityBits;
  return bits;
}

// The smallest own logit of a plausible token.
float least_plausible(SamplingRow row, uint64_t own) {
  const bool has_mask = (row.flags & kSamplingMask) != 0;
  U32 mask = U32(params.words + (has_mask ? uint64_t(row.mask) * 4 : 0));
  uint largest = 0;
  const uint quads = (params.vocab + 3) / 4;
  for (uint quad = gl_LocalInvocationID.x; quad < quads; quad += gl_WorkGroupSize.x) {
    uvec4 bits = load_quad(own, quad, params.vocab);
    if (has_mask) bits = allow(bits, mask.at[quad / 8] >> quad % 8 * 4);
    const uvec4 keys = quad_keys(bits);
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
    ban(row, own);
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
