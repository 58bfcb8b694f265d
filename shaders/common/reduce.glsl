// A sum over a workgroup, at any subgroup size. Every invocation of the workgroup must call it.
#ifndef HEARTH_REDUCE_GLSL
#define HEARTH_REDUCE_GLSL

// A slot a subgroup: enough for 1024 invocations in subgroups of 4.
shared float reduce_slots[256];

// The sum over the group, in every invocation. No barrier where the group is one subgroup, which is
// how CPU-type devices run.
float workgroup_add(float value) {
  value = subgroupAdd(value);
  if (gl_NumSubgroups == 1) return value;
  barrier();  // slots may still be read by an earlier call
  if (subgroupElect()) reduce_slots[gl_SubgroupID] = value;
  barrier();
  float sum = 0.0;
  for (uint i = 0; i < gl_NumSubgroups; ++i) sum += reduce_slots[i];
  return sum;
}

#endif
