// Products of cooperative matrices and nothing else, f16 operands and f32 sums: an upper bound for
// kernels on matrix units.
//
// Each subgroup runs kChains independent chains: 2 * M * N * K * kChains operations per round.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "common/kernel.glsl"
#include "params/matrix_ceiling.h"

shared float result[kM * kN];

void main() {
  const float seed = 0.001 * float(gl_SubgroupInvocationID + 1);
  coopmat<float16_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA> a =
      coopmat<float16_t, gl_ScopeSubgroup, kM, kK, gl_MatrixUseA>(float16_t(seed));
  coopmat<float16_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB> b =
      coopmat<float16_t, gl_ScopeSubgroup, kK, kN, gl_MatrixUseB>(float16_t(seed));
  coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator> chain[kChains];
  [[unroll]] for (uint c = 0; c < kChains; ++c)
    chain[c] = coopmat<float, gl_ScopeSubgroup, kM, kN, gl_MatrixUseAccumulator>(float(c));
  for (uint round = 0; round < params.rounds; ++round)
    [[unroll]] for (uint c = 0; c < kChains; ++c) chain[c] = coopMatMulAdd(a, b, chain[c]);
  [[unroll]] for (uint c = 1; c < kChains; ++c) chain[0] += chain[c];
  coopMatStore(chain[0], result, 0, kN, gl_CooperativeMatrixLayoutRowMajor);
  // Never true: every term is positive.
  if (result[gl_SubgroupInvocationID] < 0.0)
    U32(params.result).at[gl_WorkGroupID.x] = floatBitsToUint(result[0]);
}
