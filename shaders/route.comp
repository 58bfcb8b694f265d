// Chooses the experts of each row: the kUsed with the largest logits, of equal ones the first.
//   weights[r, i] = exp(logits[r, chosen[r, i]]) / sum of exp(logits[r, e])
// over the chosen experts e, or with kOverAll over all experts. A logit that is not a number counts as
// the lowest.
//
// One workgroup of one subgroup per row; each lane has kLaneExperts experts, local size apart:
//   workgroups = [rows, 1, 1]
// REQUIRES: a full subgroup, kUsed <= experts <= kLaneExperts * local size.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "params/route.h"
#include "common/chain.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kUsed = 8;
layout(constant_id = 2) const uint kLaneExperts = 4;
layout(constant_id = 3) const uint kOverAll = 0;

const float kLowest = -3.0e38;
const float kTaken = -1.0 / 0.0;
const uint kTakenIndex = 0xffffffffu;

void route() {
  const uint lane = gl_SubgroupInvocationID, row = gl_WorkGroupID.x;
  float logits[kLaneExperts];
  [[unroll]] for (uint i = 0; i < kLaneExperts; ++i) {
    const uint expert = lane + i * gl_WorkGroupSize.x;
    const uint place = row * params.experts + min(expert, params.experts - 1);
    const float logit = FreshF32(params.logits).at[place];
    logits[i] = expert >= params.experts ? kTaken : logit > kLowest ? logit : kLowest;
  }
  float weights[kUsed];
  float largest = 0.0, sum = 0.0;
  [[unroll]] for (uint k = 0; k < kUsed; ++k) {
    float best = kTaken;
    uint own = kTakenIndex;
    [[unroll]] for (uint i = 0; i < kLaneExperts; ++i) {
      if (logits[i] > best) {
        best = logits[i];
        own = lane + i * gl_WorkGroupSize.x;
      }
    }
    const float top = subgroupMax(best);
    const uint winner = subgroupMin(best == top ? own : kTakenIndex);
    if (k == 0) {
      largest = top;
      if (kOverAll != 0) {
        [[unroll]] for (uint i = 0; i < kLaneExperts; ++i) sum += exp(logits[i] - largest);
        sum = subgroupAdd(sum);
      }
    }
    weights[k] = exp(top - largest);
    if (kOverAll == 0) sum += weights[k];
    if (lane == k % gl_WorkGroupSize.x) U32(params.chosen).at[row * kUsed + k] = winner;
    [[unroll]] for (uint i = 0; i < kLaneExperts; ++i)
      if (lane + i * gl_WorkGroupSize.x == winner) logits[i] = kTaken;
  }
  [[unroll]] for (uint k = 0; k < kUsed; ++k)
    if (lane == k % gl_WorkGroupSize.x) F32(params.weights).at[row * kUsed + k] = weights[k] / sum;
}

void main() {
  chain_wait_fresh();
  route();
  chain_done();
}
