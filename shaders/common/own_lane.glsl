// Which subgroup and lane this is, as fragments count them; fragment_model.glsl has its own.
#ifndef HEARTH_OWN_LANE_GLSL
#define HEARTH_OWN_LANE_GLSL
#ifndef MODEL_FRAGMENTS

uint own_subgroup() { return gl_SubgroupID; }
uint own_lane() { return gl_SubgroupInvocationID; }

#endif
#endif
