// attention_lanes with emulated fragments, for tests on any device: see matmul_direct_emulated.comp.
#version 460
#extension GL_GOOGLE_include_directive : require
#define EMULATE_FRAGMENTS
#include "common/attention_lanes.glsl"
