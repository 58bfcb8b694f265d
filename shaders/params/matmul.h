#ifndef HEARTH_PARAMS_MATMUL_H
#define HEARTH_PARAMS_MATMUL_H
#include "common/interop.h"

// y[r, n] = cap(sum over k of weight[n, k] * x[r, k] + bias[n]) + residual[r, n]
// where cap(v) = soft_cap * tanh(v / soft_cap).
// Which of the three there are is a specialization constant, a sum of these.
HEARTH_CONSTANT(kEpilogueBias, 1u)
HEARTH_CONSTANT(kEpilogueSoftCap, 2u)
HEARTH_CONSTANT(kEpilogueResidual, 4u)

HEARTH_PARAMS(Matmul)
  address weight;    // [outputs, inputs] in the kernel's weight format, device layout
  address x;         // [rows, inputs] f32, or what split_rows made of it
  address y;         // [rows, outputs] f32
  address bias;      // [outputs] f32
  address residual;  // [rows, outputs] f32; may be y
  uint rows;
  uint inputs;
  uint outputs;
  float soft_cap;
HEARTH_PARAMS_END

#endif
