// What lets the matmul kernels compute experts' products (params/experts.h), when they are compiled with
// EXPERTS: the matrix of a tile's expert, the rows of x of its positions, and the epilogue. Otherwise
// the names stand for the one matrix and its rows. Kernels in which a tile is one pair of a row and an
// expert define EXPERT_ROWS, those that add up the experts of a row EXPERT_SUMS as well.
#ifndef HEARTH_EXPERTS_GLSL
#define HEARTH_EXPERTS_GLSL

#ifdef EXPERTS

layout(buffer_reference, std430, buffer_reference_align = 4) queuefamilycoherent readonly buffer FreshU32 {
  uint at[];
};
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Addresses {
  uint64_t at[];
};

uint expert = 0;              // of this workgroup's tile
uint64_t expert_weights = 0;  // where its matrix begins

uint64_t matrix_of(uint of_expert) {
  return params.weight_stride != 0 ? params.weight + of_expert * params.weight_stride
                                   : Addresses(params.weight).at[of_expert];
}

#if defined(EXPERT_ROWS) && !defined(EXPERT_SUMS)
#include "common/route.glsl"

// Chooses the experts of the tile's row, of which the tile has one. Every subgroup does it for itself, so
// no kernel needs to run before this one only to choose. The first of the tile's workgroups writes down the
// expert and its scale.
uint route_tile(uint tile) {
  const uint row = tile / kRouteUsed, own_place = tile % kRouteUsed;
  uint keys[kLaneExperts];
  load_keys(params.logits, params.experts, row, keys);
  uint own = 0;
  float own_share = 0.0, largest = 0.0, sum = 0.0;
  [[dont_unroll]] for (uint k = 0; k < kRouteUsed; ++k) {
    const LikeliestExpert best = find_likeliest(keys);
    if (k == 0) {
      largest = best.logit;
      if (kOverAll != 0) sum = sum_of_shares(keys, largest);
    }
    const float share = exp(best.logit - largest);
    if (kOverAll == 0) sum += share;
    if (k == own_place) {
      own = best.index;
      own_share = share;
    }
    take_expert(keys, best.index);
  }
  if (gl_WorkGroupID.x == 0 && gl_SubgroupID == 0 && gl_SubgroupInvocationID == 0) {
    U32(params.tiles).at[tile] = own;
    F32(params.scales).at[tile] = own_share / sum;
  }
  return own;
}
#endif

// Finds the tile's expert, after waiting for the kernel that chose it. False if the tile is empty: the
// kernel then ends with chain_done().
bool begin_expert(uint tile) {
#ifdef EXPERT_FRESH_X
  chain_wait_fresh();
#else
  chain_wait();
#endif
#if defined(EXPERT_ROWS) && !defined(EXPERT_SUMS)
  if (kRouteUsed != 0) {
    expert = route_tile(tile);
  } else {
    expert = FreshU32(params.tiles).at[tile];
  }
#else
  expert = FreshU32(params.tiles).at[tile];
#endif
  if (expert == kNoExpert) return false;
  expert_weights = matrix_of(expert);
  return true;
}

uint source_row(uint position) {
  if (params.row_pairs != 0) return position / params.row_pairs;
  return FreshU32(params.sources).at[position];
}

float expert_bias(uint n) {
  return (kEpilogue & kEpilogueBias) != 0 ? F32(params.bias).at[expert * params.outputs + n] : 0.0;
}

float expert_scale(uint position) {
  return (kEpilogue & kEpilogueScale) != 0 ? FreshF32(params.scales).at[position] : 1.0;
}

// A gate and its up, with their biases added.
vec4 gate_up(vec4 gate, vec4 up, uint kind) {
  if (kind != kGateLimited) return activate(gate, kind == kGateGelu) * up;
  const vec4 limited = min(gate, 7.0);
  return limited / (1.0 + exp(min(-1.702 * limited, 80.0))) * (clamp(up, -7.0, 7.0) + 1.0);
}

#define EXPERT_WEIGHTS expert_weights
#ifdef EXPERT_SUMS
#define X_ROW(row) (row)
#define X_INPUTS (params.row_pairs * params.inputs)
#else
#define X_ROW(row) source_row(row)
#define X_INPUTS params.inputs
#endif
#define GATED(gate, up) gate_up(vec4(gate), vec4(up), kGate).x
#define GATED_QUAD(gate, up) gate_up(gate, up, kGate)

#else

#define EXPERT_WEIGHTS params.weight
#define X_ROW(row) (row)
#define X_INPUTS params.inputs
#define GATED(gate, up) activate(gate, kGate == kGateGelu) * up
#define GATED_QUAD(gate, up) activate(gate, kGate == kGateGelu) * up

#endif
#endif
