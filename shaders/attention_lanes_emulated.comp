// attention_lanes with fragments of plain values, as matmul_direct_emulated is matmul_direct.
#version 460
#extension GL_GOOGLE_include_directive : require
#define EMULATE_FRAGMENTS
#include "common/attention_lanes.glsl"
