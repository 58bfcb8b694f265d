// What happens to a finished sum before it is stored. Expects params/matmul.h.
#ifndef HEARTH_MATMUL_OUTPUT_GLSL
#define HEARTH_MATMUL_OUTPUT_GLSL

// Constants and not tests of the addresses: lavapipe runs a load whose address is the same for the
// whole subgroup even where control flow says not to, and would read address 0.
layout(constant_id = 1) const uint kEpilogue = 0;

void store_output(uint row, uint n, float value) {
  const uint place = row * params.outputs + n;
  if ((kEpilogue & kEpilogueBias) != 0) value += F32(params.bias).at[n];
  if ((kEpilogue & kEpilogueSoftCap) != 0) value = params.soft_cap * tanh(value / params.soft_cap);
  if ((kEpilogue & kEpilogueResidual) != 0) value += F32(params.residual).at[place];
  F32(params.y).at[place] = value;
}

#endif
