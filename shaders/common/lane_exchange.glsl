// Exchanges between the lanes of a subgroup, real or emulated. Include after fragment_lanes.glsl.
#ifndef HEARTH_LANE_EXCHANGE_GLSL
#define HEARTH_LANE_EXCHANGE_GLSL
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
#include "common/lane_id.glsl"

#ifdef EMULATE_FRAGMENTS
float shuffle_xor(float value, uint mask) { return emulated_shuffle(value, lane_id() ^ mask); }
float shuffle_from(float value, uint lane) { return emulated_shuffle(value, lane); }
bool any_lane(bool value) { return true; }  // only for work that is harmless if not needed
#else
float shuffle_xor(float value, uint mask) { return subgroupShuffleXor(value, mask); }
float shuffle_from(float value, uint lane) { return subgroupShuffle(value, lane); }
bool any_lane(bool value) { return subgroupAny(value); }
#endif

#endif
