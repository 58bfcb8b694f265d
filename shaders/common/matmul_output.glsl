// The epilogue of a finished sum, and its store. Expects the kernel's arguments and kEpilogue, which is
// a constant because lavapipe executes a load whose address is uniform in the subgroup even if control flow
// skips it: a test for null addresses would not keep it from reading address 0.
#ifndef HEARTH_MATMUL_OUTPUT_GLSL
#define HEARTH_MATMUL_OUTPUT_GLSL

#include "common/experts.glsl"
#if defined(EXPERT_SUMS)

// The row so far, and the biases of its experts. They are loaded while weights are on their way.
float load_residual(uint row, uint n) {
  row = min(row, params.rows - 1);
  n = min(n, params.outputs - 1);
  float sum = FreshF32(params.y).at[row * params.outputs + n];
  if ((kEpilogue & kEpilogueBias) != 0) {
    for (uint pair = row * params.row_pairs; pair < (row + 1) * params.row_pairs; ++pair)
      sum += FreshF32(params.scales).at[pair] *
             F32(params.bias).at[FreshU32(params.tiles).at[pair] * params.outputs + n];
  }
  return sum;
}

float store_output(uint row, uint n, float value, float residual) {
  F32(params.y).at[row * params.outputs + n] = value + residual;
  return value + residual;
}

#elif defined(EXPERTS)

float load_residual(uint row, uint n) { return 0.0; }
vec4 load_residual_quad(uint row, uint n) { return vec4(0.0); }

float store_output(uint row, uint n, float value, float residual) {
  value = (value + expert_bias(n)) * expert_scale(row);
  F32(params.y).at[row * params.outputs + n] = value;
  return value;
}

// Kernels that compute fragments begin their sums with the bias.
void store_output_quad(uint row, uint n, vec4 value, vec4 residual) {
  if (row >= params.rows || n >= params.outputs) return;
  value *= expert_scale(row);
  [[unroll]] for (uint i = 0; i < 4; ++i)
    if (n + i < params.outputs) F32(params.y).at[row * params.outputs + n + i] = value[i];
}

#else

// The residual that store_output() takes, which may be loaded long before. Any row and n are allowed.
float load_residual(uint row, uint n) {
  if ((kEpilogue & kEpilogueResidual) == 0) return 0.0;
  const uint place = min(row, params.rows - 1) * params.outputs + min(n, params.outputs - 1);
  return FreshF32(params.residual).at[place];
}

// Returns the value it stored.
float store_output(uint row, uint n, float value, float residual) {
  if ((kEpilogue & kEpilogueBias) != 0) value += F32(params.bias).at[n];
  if ((kEpilogue & kEpilogueSoftCap) != 0) value = params.soft_cap * tanh(value / params.soft_cap);
  if ((kEpilogue & kEpilogueResidual) != 0) value += residual;
  F32(params.y).at[row * params.outputs + n] = value;
  return value;
}

// The same for store_output_quad().
vec4 load_residual_quad(uint row, uint n) {
  if ((kEpilogue & kEpilogueResidual) == 0 || params.outputs % 4 != 0) return vec4(0.0);
  const uint place = min(row, params.rows - 1) * params.outputs + min(n, params.outputs - 4);
  return FreshF32x4(params.residual).at[place / 4];
}

// Stores four neighbouring outputs from n on, a multiple of 4. Those outside the result are dropped.
void store_output_quad(uint row, uint n, vec4 value, vec4 residual) {
  if (row >= params.rows || n >= params.outputs) return;
  if (params.outputs % 4 != 0) {
    [[unroll]] for (uint i = 0; i < 4; ++i)
      if (n + i < params.outputs) store_output(row, n + i, value[i], load_residual(row, n + i));
    return;
  }
  const uint place = (row * params.outputs + n) / 4;
  if ((kEpilogue & kEpilogueBias) != 0) value += F32x4(params.bias).at[n / 4];
  if ((kEpilogue & kEpilogueSoftCap) != 0) value = params.soft_cap * tanh(value / params.soft_cap);
  if ((kEpilogue & kEpilogueResidual) != 0) value += residual;
  F32x4(params.y).at[place] = value;
}

#endif
#endif
