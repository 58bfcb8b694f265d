// A sum over a workgroup, at any subgroup size. Every invocation of the workgroup must call it.
#ifndef HEARTH_REDUCE_GLSL
#define HEARTH_REDUCE_GLSL

// One per subgroup: enough for 1024 invocations in subgroups of 4.
shared float subgroup_sums[256];

// The sum over the workgroup, in every invocation. No barrier if the workgroup is one subgroup, as on
// CPU-type devices.
float workgroup_add(float value) {
  value = subgroupAdd(value);
  if (gl_NumSubgroups == 1) return value;
  barrier();  // an earlier call may still read them
  if (subgroupElect()) subgroup_sums[gl_SubgroupID] = value;
  barrier();
  float sum = 0.0;
  for (uint i = 0; i < gl_NumSubgroups; ++i) sum += subgroup_sums[i];
  return sum;
}

#endif
