// matmul_team with fragments of plain values instead of cooperative matrices: the same loads, places
// and stores on any device, however slow, which is how tests look at them where no device has such
// fragments. groups, constants and params as there.
#version 460
#extension GL_GOOGLE_include_directive : require
#define EMULATE_FRAGMENTS
#include "common/matmul_team.glsl"
