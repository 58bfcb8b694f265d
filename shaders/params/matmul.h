#ifndef HEARTH_PARAMS_MATMUL_H
#define HEARTH_PARAMS_MATMUL_H
#include "common/interop.h"

// y[r, n] = cap(sum over k of weight[n, k] * x[r, k] + bias[n]) + residual[r, n]
// where cap(v) = soft_cap * tanh(v / soft_cap).
// Which of the three there are is a specialization constant, a sum of these.
HEARTH_CONSTANT(kEpilogueBias, 1u)
HEARTH_CONSTANT(kEpilogueSoftCap, 2u)
HEARTH_CONSTANT(kEpilogueResidual, 4u)

// An RMS norm between two matrix-vector products of one row needs no kernel of its own. Kernels that make
// integers of x norm it on the way; of two others the first leaves beside y
//   scaled[n] = y[n] * norm_weight[n];  squares[g] = sum of y[n]^2 over what group g computed
// and the second, for which x is `scaled`, multiplies its sums by
//   1 / sqrt(sum over g of squares[g] / inputs + epsilon)
// Besides, the outputs of a gated MLP can be put together where they are made: the first half of the
// matrix is the gate, the second is up:
//   y[r, n] = act(sum[r, n]) * sum[r, n + outputs / 2]
HEARTH_CONSTANT(kGateNone, 0u)
HEARTH_CONSTANT(kGateSilu, 1u)
HEARTH_CONSTANT(kGateGelu, 2u)

HEARTH_PARAMS(Matmul)
  address weight;    // [outputs, inputs] in the kernel's weight format, device layout
  address x;         // [rows, inputs] f32, or f16 as half_rows makes it
  address y;         // [rows, outputs] f32
  address bias;      // [outputs] f32
  address residual;  // [rows, outputs] f32; may be y
  address norm_weight;  // [outputs] f32, or [inputs] of those that norm x on the way
  address scaled;       // [outputs] f32
  address squares;      // [square_count] f32
  address counts;       // of shared tiles: a u32 each, zero: groups that are done
  address shared_parts; // [shared tiles, groups of each, rows of a tile, outputs of a tile] f32
  uint rows;
  uint inputs;
  uint outputs;
  float soft_cap;
  float epsilon;  // of the norm
  uint square_count;
  uint whole_tiles;  // that have a group each; the others are shared
  uint part_stride;  // of a split product: floats from row to row of its parts
HEARTH_PARAMS_END

#endif
