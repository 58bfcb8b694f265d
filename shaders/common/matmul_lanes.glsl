// The common start of matmul_team, matmul_direct and matmul_wide: weights, x as halves, and fragments
// filled from registers.
#ifndef HEARTH_MATMUL_LANES_GLSL
#define HEARTH_MATMUL_LANES_GLSL
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "common/kernel.glsl"
#define LOAD_HALVES_SINGLY  // see quant/piece.h
#define SUBNORMAL_HALVES    // see common/weight_chunk_f16.glsl
#include "quant/glsl.h"
#include "weight_format.h"
#include "common/activation.glsl"
#include "common/halves.glsl"
#include "common/weight_chunk_f16.glsl"
#include "common/chain.glsl"
#include "common/matmul_output.glsl"
#include "common/fragment_lanes.glsl"

const uint kFragmentRows = 16, kFragmentOutputs = 8;
const uint kFragmentQuads = kFragmentRows * kFragmentOutputs / 4;  // of sums
const uint kSubgroupSize = 32;

#endif
