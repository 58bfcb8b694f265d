// Groups pairs of a row and one of its experts by expert, in tiles of tile_rows positions that all have
// the same expert. Experts come in order and each expert's pairs in theirs, so the result does not
// depend on timing.
//
// One workgroup per expert: it counts the pairs of every expert, which tells where its own tiles begin,
// and then numbers its own pairs.
//   workgroups = [kExperts, 1, 1]
// REQUIRES: full subgroups; every chosen expert is below kExperts; room for
// pairs / tile_rows + min(pairs, kExperts) tiles.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "common/kernel.glsl"
#include "params/group_experts.h"
#include "common/chain.glsl"

shared uint counts[kExperts];        // pairs of each expert
shared uint subgroup_counts[256];    // enough for 1024 invocations in subgroups of 4

uint tiles_of(uint pairs) { return DIVIDE_UP(pairs, params.tile_rows); }

// The sum over the workgroup, in every invocation, and over the invocations before this one.
uint workgroup_sum(uint value, out uint before) {
  before = subgroupExclusiveAdd(value);
  const uint subgroup_total = subgroupAdd(value);
  barrier();  // an earlier call may still read them
  if (subgroupElect()) subgroup_counts[gl_SubgroupID] = subgroup_total;
  barrier();
  uint total = 0;
  for (uint i = 0; i < gl_NumSubgroups; ++i) {
    if (i < gl_SubgroupID) before += subgroup_counts[i];
    total += subgroup_counts[i];
  }
  return total;
}

// Invocations in the order of subgroups, as workgroup_sum() counts them.
uint workgroup_lane() { return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID; }

void count_pairs() {
  for (uint e = gl_LocalInvocationIndex; e < kExperts; e += gl_WorkGroupSize.x) counts[e] = 0;
  barrier();
  for (uint pair = gl_LocalInvocationIndex; pair < params.pairs; pair += gl_WorkGroupSize.x)
    atomicAdd(counts[min(U32(params.chosen).at[pair], kExperts - 1)], 1);
  barrier();
}

// Sources and scales of this expert's positions, and the places of its pairs.
void number_pairs(uint expert, uint first_position) {
  uint done = 0;
  for (uint base = 0; base < params.pairs; base += gl_WorkGroupSize.x) {
    const uint pair = base + workgroup_lane();
    const bool own = pair < params.pairs && U32(params.chosen).at[min(pair, params.pairs - 1)] == expert;
    uint before;
    const uint count = workgroup_sum(own ? 1 : 0, before);
    if (own) {
      const uint position = first_position + done + before;
      U32(params.sources).at[position] = pair / params.row_pairs;
      F32(params.scales).at[position] = F32(params.weights).at[pair];
      U32(params.places).at[pair] = position;
    }
    done += count;
  }
  const uint end = tiles_of(done) * params.tile_rows;
  for (uint i = done + gl_LocalInvocationIndex; i < end; i += gl_WorkGroupSize.x) {
    U32(params.sources).at[first_position + i] = 0;
    F32(params.scales).at[first_position + i] = 0.0;
  }
}

void main() {
  chain_wait();
  const uint expert = gl_WorkGroupID.x;
  count_pairs();
  uint tiles_before = 0, all_tiles = 0;
  for (uint e = gl_LocalInvocationIndex; e < kExperts; e += gl_WorkGroupSize.x) {
    const uint tiles = tiles_of(counts[e]);
    all_tiles += tiles;
    if (e < expert) tiles_before += tiles;
  }
  uint unused;
  all_tiles = workgroup_sum(all_tiles, unused);
  const uint first = workgroup_sum(tiles_before, unused);
  const uint own = tiles_of(counts[expert]);
  for (uint i = gl_LocalInvocationIndex; i < own; i += gl_WorkGroupSize.x)
    U32(params.tiles).at[first + i] = expert;
  // Tiles that no expert needs are shared among all workgroups.
  const uint stride = gl_WorkGroupSize.x * gl_NumWorkGroups.x;
  for (uint i = all_tiles + expert * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
       i < params.tile_count; i += stride)
    U32(params.tiles).at[i] = kNoExpert;
  number_pairs(expert, first * params.tile_rows);
  chain_done();
}
