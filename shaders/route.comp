// Chooses the experts of each row: the kUsed with the largest logits, of equal ones the first.
//   weights[r, i] = exp(logits[r, chosen[r, i]]) / sum of exp(logits[r, e])
// over the chosen experts e, or with kOverAll over all experts. A logit that is not a number counts as
// the lowest.
//
// One workgroup of one subgroup per row:
//   workgroups = [rows, 1, 1]
// REQUIRES: a full subgroup, kUsed <= experts <= kLaneExperts * local size.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "params/route.h"
#include "common/chain.glsl"

#include "common/route.glsl"

void route() {
  const uint lane = gl_SubgroupInvocationID, row = gl_WorkGroupID.x;
  uint keys[kLaneExperts];
  load_keys(params.logits, params.experts, row, keys);
  float weights[kUsed];
  float largest = 0.0, sum = 0.0;
  [[unroll]] for (uint k = 0; k < kUsed; ++k) {
    const LikeliestExpert best = find_likeliest(keys);
    if (k == 0) {
      largest = best.logit;
      if (kOverAll != 0) sum = sum_of_shares(keys, largest);
    }
    weights[k] = exp(best.logit - largest);
    if (kOverAll == 0) sum += weights[k];
    if (lane == k % gl_WorkGroupSize.x) U32(params.chosen).at[row * kUsed + k] = best.index;
    take_expert(keys, best.index);
  }
  [[unroll]] for (uint k = 0; k < kUsed; ++k)
    if (lane == k % gl_WorkGroupSize.x) F32(params.weights).at[row * kUsed + k] = weights[k] / sum;
}

void main() {
  chain_wait_fresh();
  route();
  chain_done();
}
