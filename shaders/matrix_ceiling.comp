// Products of cooperative matrices and nothing else, f16 operands and f32 sums: the arithmetic no
// kernel on matrix units here can beat.
//
// Each subgroup multiplies kSide fragments by kSide others, as a large tile does, which is ahead of one
// pair again and again: 2 * M * N * K * kSide * kSide operations a round.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "common/kernel.glsl"
#include "params/ceiling.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint kSide = 4;
layout(constant_id = 2) const uint kM = 16;
layout(constant_id = 3) const uint kN = 16;
layout(constant_id = 4) const uint kK = 16;

#define FragmentA coopmat<float16_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA>
#define FragmentB coopmat<float16_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB>
#define Sums coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>

const uint kChains = kSide * kSide;
shared float result[kM * kN];

void main() {
  const float seed = 0.001 * float(gl_SubgroupInvocationID + 1);
  FragmentA a[kSide];
  FragmentB b[kSide];
  Sums chain[kChains];
  [[unroll]] for (uint i = 0; i < kSide; ++i) {
    a[i] = FragmentA(float16_t(seed * float(i + 1)));
    b[i] = FragmentB(float16_t(seed * float(i + 5)));
  }
  [[unroll]] for (uint c = 0; c < kChains; ++c) chain[c] = Sums(float(c));
  for (uint round = 0; round < params.rounds; ++round)
    [[unroll]] for (uint c = 0; c < kChains; ++c)
      chain[c] = coopMatMulAdd(a[c / kSide], b[c % kSide], chain[c]);
  [[unroll]] for (uint c = 1; c < kChains; ++c) chain[0] += chain[c];
  coopMatStore(chain[0], result, 0, kN, gl_CooperativeMatrixLayoutRowMajor);
  // Never true: every term is positive.
  if (result[gl_SubgroupInvocationID] < 0.0)
    U32(params.result).at[gl_WorkGroupID.x] = floatBitsToUint(result[0]);
}
