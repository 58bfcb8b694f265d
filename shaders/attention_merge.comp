// Puts together what the splits of a token's keys gave:
//   m = max over splits of max[s];  weight[s] = 2^(max[s] - m)
//   result = (sum over s of weight[s] * sums[s]) / (sum over s of weight[s] * sum[s])
//
// A workgroup takes an AttentionMerge and one head: kVectors invocations go along the head, kParts
// times as many share out the splits. With one part there is no barrier.
//   groups = [merges, heads, 1]
// REQUIRES: head_size a multiple of 4, addresses multiples of 16.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "common/row_form.glsl"
#include "params/attention_work.h"
#include "params/attention_merge.h"
#include "common/chain.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kVectors = 32;  // the group size is kVectors * kParts
layout(constant_id = 2) const uint kParts = 4;
layout(constant_id = 3) const uint kForm = 0;  // of the result

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Merges {
  AttentionMerge at[];
};
layout(buffer_reference, std430, buffer_reference_align = 8) nonprivate readonly buffer Stats { vec2 at[]; };

shared vec4 shared_sums[kVectors * kParts];
shared vec2 shared_stats[kVectors * kParts];

// Two sums of splits, each with its max and its sum of weights, become one.
void merge_into(inout vec4 sum, inout vec2 stats, vec4 other_sum, vec2 other_stats) {
  const float new_max = max(stats.x, other_stats.x);
  const float shrink = exp2(stats.x - new_max), other_shrink = exp2(other_stats.x - new_max);
  sum = sum * shrink + other_sum * other_shrink;
  stats = vec2(new_max, stats.y * shrink + other_stats.y * other_shrink);
}

void merge_splits() {
  const AttentionMerge merge = Merges(params.merges).at[gl_WorkGroupID.x];
  if (merge.splits == 0) return;
  const uint head = gl_WorkGroupID.y;
  const uint first = merge.partial * params.heads + head;
  const uint stride = merge.stride * params.heads;
  const uint head_vectors = params.head_size / 4;
  const uint lane = gl_LocalInvocationID.x;
  const uint part = lane / kVectors;
  Stats stats = Stats(params.partial_stats);

  for (uint base = 0; base < head_vectors; base += kVectors) {
    const uint vector = base + lane % kVectors;
    vec4 sum = vec4(0);
    vec2 stat = vec2(-1e30, 0.0);
    if (vector < head_vectors) {
      for (uint s = part; s < merge.splits; s += kParts) {
        const uint at = first + s * stride;
        merge_into(sum, stat,
                   F32x4(params.partial_sums + uint64_t(at) * (params.head_size * 4)).at[vector],
                   stats.at[at]);
      }
    }
    if (kParts > 1) {
      barrier();  // what an earlier round wrote may still be read
      shared_sums[lane] = sum;
      shared_stats[lane] = stat;
      barrier();
      for (uint other = 1; other < kParts && part == 0; ++other) {
        const uint at = other * kVectors + lane;
        merge_into(sum, stat, shared_sums[at], shared_stats[at]);
      }
    }
    if (part == 0 && vector < head_vectors) {
      const uint at = merge.row * params.heads + head;
      const vec4 value = sum * (1.0 / stat.y);
      if (kForm == kFormFloats)
        F32x4(params.result + uint64_t(at) * (head_vectors * 16)).at[vector] = value;
      else
        write_halves(params.result, at * head_vectors + vector, value);
    }
  }
}

void main() {
  chain_wait();
  merge_splits();
  chain_done();
}
