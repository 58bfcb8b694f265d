// The largest cosine similarity of a row's hidden state to those that were kept of a sequence:
//   similarity[c] = max over t < tokens of dot(x[row] / |x[row]|, kept[slot, t])   of comparison c
//
// The workgroups of a comparison divide the tokens; each writes the maximum of its own, or -2 if it has
// none: similarity is [comparisons, kComparisonParts]. Comparisons of 0 tokens leave theirs unchanged.
//   workgroups = [kComparisonParts, comparisons, 1]
// A subgroup takes kComparisonRun neighbouring tokens at once, so that x is read once for all of them.
// REQUIRES: width is a multiple of 8; the tokens were kept by earlier dispatches.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "params/compare_hidden.h"
#include "common/chain.glsl"
#include "common/hidden_pages.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer HiddenComparisons {
  HiddenComparison at[];
};

shared float subgroup_maxima[256];

float similarity_to(F32x4 x, HiddenComparison comparison) {
  float squares = 0.0;
  for (uint i = gl_SubgroupInvocationID; i < params.width / 4; i += gl_SubgroupSize)
    squares += dot(x.at[i], x.at[i]);
  squares = subgroupAdd(squares);
  const float scale = squares > 0.0 ? inversesqrt(squares) : 0.0;

  float largest = -2.0;
  const uint stride = kComparisonParts * gl_NumSubgroups * kComparisonRun;
  for (uint first = (gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID) * kComparisonRun;
       first < comparison.tokens; first += stride) {
    // The last tokens of the run may not exist: the last one that does is compared again. A loop that
    // is left may still execute loads, so even then the address is valid.
    const uint last = max(comparison.tokens, 1) - 1;
    uint64_t rows[kComparisonRun];
    [[unroll]] for (uint k = 0; k < kComparisonRun; ++k)
      rows[k] = hidden_row(comparison.slot, min(first + k, last));
    float sums[kComparisonRun];
    [[unroll]] for (uint k = 0; k < kComparisonRun; ++k) sums[k] = 0.0;
    for (uint i = gl_SubgroupInvocationID; i < params.width / 8; i += gl_SubgroupSize) {
      const vec4 low = x.at[2 * i], high = x.at[2 * i + 1];
      [[unroll]] for (uint k = 0; k < kComparisonRun; ++k) {
        const uvec4 kept = U32x4(rows[k]).at[i];
        sums[k] += dot(low, vec4(unpackHalf2x16(kept.x), unpackHalf2x16(kept.y))) +
                   dot(high, vec4(unpackHalf2x16(kept.z), unpackHalf2x16(kept.w)));
      }
    }
    [[unroll]] for (uint k = 0; k < kComparisonRun; ++k)
      largest = max(largest, subgroupAdd(sums[k]) * scale);
  }
  return largest;
}

void compare() {
  const HiddenComparison comparison = HiddenComparisons(params.comparisons).at[gl_WorkGroupID.y];
  if (comparison.tokens == 0) return;
  float largest = similarity_to(F32x4(params.x + uint64_t(comparison.row) * params.width * 4), comparison);
  if (gl_NumSubgroups > 1) {
    if (subgroupElect()) subgroup_maxima[gl_SubgroupID] = largest;
    barrier();
    for (uint i = 0; i < gl_NumSubgroups; ++i) largest = max(largest, subgroup_maxima[i]);
  }
  if (gl_LocalInvocationIndex == 0)
    F32(params.similarity).at[gl_WorkGroupID.y * kComparisonParts + gl_WorkGroupID.x] = largest;
}

void main() {
  chain_wait();
  compare();
  chain_done();
}
