// matmul_direct with fragments emulated by plain values instead of cooperative matrices: the same loads,
// indices and stores, on any device, but slow. Tests use it to check them on devices whose lanes do not
// hold such fragments. Workgroups, constants and params are those of matmul_direct.
#version 460
#extension GL_GOOGLE_include_directive : require
#define EMULATE_FRAGMENTS
#include "common/matmul_direct.glsl"
