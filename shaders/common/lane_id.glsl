// This invocation's subgroup and lane, real ones; fragment_emulation.glsl has the emulated ones.
#ifndef HEARTH_LANE_ID_GLSL
#define HEARTH_LANE_ID_GLSL
#ifndef EMULATE_FRAGMENTS

uint subgroup_id() { return gl_SubgroupID; }
uint lane_id() { return gl_SubgroupInvocationID; }

#endif
#endif
