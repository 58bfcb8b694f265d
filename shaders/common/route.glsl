// Finds the experts with the largest logits of a row, one after the other. A subgroup does it together; each
// lane has kLaneExperts experts, a subgroup's size apart.
// Expects kLaneExperts and FreshF32. REQUIRES: a full subgroup, experts <= kLaneExperts * subgroup size.
#ifndef HEARTH_ROUTE_GLSL
#define HEARTH_ROUTE_GLSL

// Logits as integers in the same order, whose largest devices find faster than that of floats. 0 is
// smaller than any logit: an expert that was chosen already, or that does not exist.
const uint kTakenKey = 0;
const uint kNoIndex = 0xffffffffu;

uint logit_key(float logit) {
  const uint bits = floatBitsToUint(logit);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

float key_logit(uint key) {
  return uintBitsToFloat((key & 0x80000000u) != 0 ? key ^ 0x80000000u : ~key);
}

uint lane_expert(uint i) { return gl_SubgroupInvocationID + i * gl_SubgroupSize; }

// The keys of row `row`. A logit that is not a number counts as the lowest.
void load_keys(uint64_t logits, uint experts, uint row, out uint keys[kLaneExperts]) {
  const float lowest = -3.0e38;
  [[unroll]] for (uint i = 0; i < kLaneExperts; ++i) {
    const float logit = FreshF32(logits).at[row * experts + min(lane_expert(i), experts - 1)];
    keys[i] = lane_expert(i) >= experts ? kTakenKey : logit_key(logit > lowest ? logit : lowest);
  }
}

struct LikeliestExpert {
  uint index;
  float logit;
};

// Of experts with equal logits, the first. The same in every lane.
LikeliestExpert find_likeliest(uint keys[kLaneExperts]) {
  uint best = kTakenKey, own = kNoIndex;
  [[unroll]] for (uint i = 0; i < kLaneExperts; ++i) {
    if (keys[i] > best) {
      best = keys[i];
      own = lane_expert(i);
    }
  }
  const uint top = subgroupMax(best);
  return LikeliestExpert(subgroupMin(best == top ? own : kNoIndex), key_logit(top));
}

void take_expert(inout uint keys[kLaneExperts], uint expert) {
  [[unroll]] for (uint i = 0; i < kLaneExperts; ++i)
    if (lane_expert(i) == expert) keys[i] = kTakenKey;
}

// The sum of exp(logit - largest) over the experts that are not taken.
float sum_of_shares(uint keys[kLaneExperts], float largest) {
  float sum = 0.0;
  [[unroll]] for (uint i = 0; i < kLaneExperts; ++i)
    if (keys[i] != kTakenKey) sum += exp(key_logit(keys[i]) - largest);
  return subgroupAdd(sum);
}

#endif
