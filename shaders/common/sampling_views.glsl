// Typed views of the buffers that the sampling kernels share, and the order in which they read a row's
// logits.
#ifndef HEARTH_SAMPLING_VIEWS_GLSL
#define HEARTH_SAMPLING_VIEWS_GLSL

#include "params/sampling.h"

layout(buffer_reference, std430, buffer_reference_align = 4) buffer SamplingRows {
  SamplingRow at[];
};
layout(buffer_reference, std430, buffer_reference_align = 4) nonprivate buffer SamplingChunks {
  SamplingChunk at[];
};
layout(buffer_reference, std430, buffer_reference_align = 4) buffer SamplingResults {
  SamplingResult at[];
};
layout(buffer_reference, std430, buffer_reference_align = 4) buffer TokenLogprobs {
  TokenLogprob at[];
};
layout(buffer_reference, std430, buffer_reference_align = 4) buffer TokenBiases {
  TokenBias at[];
};
layout(buffer_reference, std430, buffer_reference_align = 4) nonprivate buffer TokenCounts {
  TokenCount at[];
};

const uint kMinusInfinityBits = 0xff800000u;
bool is_nan(uint bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }

// Four neighbouring logits; -infinity past the end of the row.
uvec4 load_quad(uint64_t row_logits, uint quad, uint vocab) {
  uvec4 bits = uvec4(kMinusInfinityBits);
  if (vocab % 4 == 0) {
    if (quad < vocab / 4) bits = U32x4(row_logits).at[quad];
  } else {
    [[unroll]] for (uint c = 0; c < 4; ++c)
      if (quad * 4 + c < vocab) bits[c] = U32(row_logits).at[quad * 4 + c];
  }
  return bits;
}

uvec4 quad_keys(uvec4 bits) {
  return uvec4(logit_key(bits.x), logit_key(bits.y), logit_key(bits.z), logit_key(bits.w));
}

// The j-th quad of a segment. `lanes` is the number of lanes of sample_scan.
uint segment_quad(uint segment, uint j, uint lanes) {
  return segment / lanes * (lanes * kSegmentQuads) + j * lanes + segment % lanes;
}

#endif
