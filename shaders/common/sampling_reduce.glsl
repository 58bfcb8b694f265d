// Integer reductions over a workgroup, at any subgroup size. Every invocation of the workgroup must call
// them. If the workgroup is one subgroup, as on CPU-type devices, they execute no barrier.
#ifndef HEARTH_SAMPLING_REDUCE_GLSL
#define HEARTH_SAMPLING_REDUCE_GLSL

// One per subgroup: enough for 1024 invocations in subgroups of 4.
shared uint subgroup_values[256];
shared uvec2 subgroup_pairs[256];

// A lane's place in its subgroup, and the number of lanes that exist, which may be fewer than
// gl_SubgroupSize.
struct Lanes {
  uint lane, count;
};
Lanes subgroup_lanes() { return Lanes(subgroupExclusiveAdd(1u), subgroupAdd(1u)); }

// Up to this many subgroups, every lane reads what all of them found; beyond it, the lanes of a subgroup
// share the work.
const uint kFewSubgroups = 8;

void share_with_workgroup(uint value) {
  barrier();  // an earlier call may still read them
  if (subgroupElect()) subgroup_values[gl_SubgroupID] = value;
  barrier();
}

void share_with_workgroup(uvec2 value) {
  barrier();
  if (subgroupElect()) subgroup_pairs[gl_SubgroupID] = value;
  barrier();
}

uint workgroup_max(uint value) {
  value = subgroupMax(value);
  if (gl_NumSubgroups == 1) return value;
  share_with_workgroup(value);
  value = 0;
  if (gl_NumSubgroups <= kFewSubgroups) {
    for (uint i = 0; i < gl_NumSubgroups; ++i) value = max(value, subgroup_values[i]);
    return value;
  }
  const Lanes own = subgroup_lanes();
  for (uint i = own.lane; i < gl_NumSubgroups; i += own.count) value = max(value, subgroup_values[i]);
  return subgroupMax(value);
}

uint workgroup_min(uint value) { return ~workgroup_max(~value); }

uint workgroup_sum(uint value) {
  value = subgroupAdd(value);
  if (gl_NumSubgroups == 1) return value;
  share_with_workgroup(value);
  value = 0;
  if (gl_NumSubgroups <= kFewSubgroups) {
    for (uint i = 0; i < gl_NumSubgroups; ++i) value += subgroup_values[i];
    return value;
  }
  const Lanes own = subgroup_lanes();
  for (uint i = own.lane; i < gl_NumSubgroups; i += own.count) value += subgroup_values[i];
  return subgroupAdd(value);
}

uvec2 workgroup_min(uvec2 value) {
  value = subgroupMin(value);
  if (gl_NumSubgroups == 1) return value;
  share_with_workgroup(value);
  value = uvec2(0xffffffffu);
  for (uint i = 0; i < gl_NumSubgroups; ++i) value = min(value, subgroup_pairs[i]);
  return value;
}

uvec2 workgroup_sum(uvec2 value) {
  value = subgroupAdd(value);
  if (gl_NumSubgroups == 1) return value;
  share_with_workgroup(value);
  value = uvec2(0);
  for (uint i = 0; i < gl_NumSubgroups; ++i) value += subgroup_pairs[i];
  return value;
}

// 64-bit sums over a subgroup, in limbs of 16 bits, so that no limb overflows.
uvec4 limbs_of_64(uint64_t value) {
  const uint low = uint(value), high = uint(value >> 32);
  return uvec4(low & 0xffffu, low >> 16, high & 0xffffu, high >> 16);
}

uint64_t join_64(uvec4 limbs) {
  return uint64_t(limbs.x) + (uint64_t(limbs.y) << 16) + (uint64_t(limbs.z) << 32) +
         (uint64_t(limbs.w) << 48);
}

uint64_t subgroup_sum64(uint64_t value) { return join_64(subgroupAdd(limbs_of_64(value))); }

uint64_t workgroup_sum64(uint64_t value) {
  const uvec4 limbs = limbs_of_64(value);
  return join_64(uvec4(workgroup_sum(limbs.xy), workgroup_sum(limbs.zw)));
}

// Of this lane and all before it.
uint64_t subgroup_running_sum64(uint64_t value) {
  return join_64(subgroupInclusiveAdd(limbs_of_64(value)));
}

#endif
