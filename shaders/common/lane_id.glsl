// Which subgroup and lane this is, as fragments count them; fragment_emulation.glsl has its own.
#ifndef HEARTH_LANE_ID_GLSL
#define HEARTH_LANE_ID_GLSL
#ifndef EMULATE_FRAGMENTS

uint subgroup_id() { return gl_SubgroupID; }
uint lane_id() { return gl_SubgroupInvocationID; }

#endif
#endif
