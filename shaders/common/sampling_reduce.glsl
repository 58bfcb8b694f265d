// Integer reductions over a workgroup, at any subgroup size. Every invocation of the workgroup must call
// them. If the workgroup is one subgroup, as on CPU-type devices, they execute no barrier.
#ifndef HEARTH_SAMPLING_REDUCE_GLSL
#define HEARTH_SAMPLING_REDUCE_GLSL

layout(local_size_x_id = 0) in;

// One per subgroup: enough for 1024 invocations in subgroups of 4.
shared uint subgroup_values[256];
shared uvec2 subgroup_pairs[256];

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
  for (uint i = 0; i < gl_NumSubgroups; ++i) value = max(value, subgroup_values[i]);
  return value;
}

uint workgroup_min(uint value) { return ~workgroup_max(~value); }

uint workgroup_sum(uint value) {
  value = subgroupAdd(value);
  if (gl_NumSubgroups == 1) return value;
  share_with_workgroup(value);
  value = 0;
  for (uint i = 0; i < gl_NumSubgroups; ++i) value += subgroup_values[i];
  return value;
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

#endif
