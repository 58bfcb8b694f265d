// What lanes of a subgroup tell each other, as fragments count lanes. Include after fragment_lanes.glsl.
#ifndef HEARTH_LANE_EXCHANGE_GLSL
#define HEARTH_LANE_EXCHANGE_GLSL
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
#include "common/own_lane.glsl"

#ifdef MODEL_FRAGMENTS
float from_lane(float value, uint mask) { return model_value_of(value, own_lane() ^ mask); }
float of_lane(float value, uint lane) { return model_value_of(value, lane); }
bool any_lane(bool value) { return true; }  // for what does no harm where it is not needed
#else
float from_lane(float value, uint mask) { return subgroupShuffleXor(value, mask); }
float of_lane(float value, uint lane) { return subgroupShuffle(value, lane); }
bool any_lane(bool value) { return subgroupAny(value); }
#endif

#endif
