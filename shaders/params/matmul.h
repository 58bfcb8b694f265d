#ifndef HEARTH_PARAMS_MATMUL_H
#define HEARTH_PARAMS_MATMUL_H
#include "common/interop.h"

// y[r, n] = cap(sum over k of weight[n, k] * x[r, k] + bias[n]) + residual[r, n]
// where cap(v) = soft_cap * tanh(v / soft_cap).
// Which of the three there are is a specialization constant, a sum of these.
HEARTH_CONSTANT(kEpilogueBias, 1u)
HEARTH_CONSTANT(kEpilogueSoftCap, 2u)
HEARTH_CONSTANT(kEpilogueResidual, 4u)

// An RMS norm before a product of one row needs no kernel of its own where the product norms x on the way:
//   x[k] * norm_weight[k] / sqrt(sum over k of x[k]^2 / inputs + epsilon)
// Nor does one between two products of a few rows, which both have a part in it. The first begins it: besides
// y it writes
//   begun[r, n] = y[r, n] * norm_weight[n] * guess[r], as f16
// where the guess is what a norm before multiplied that row by, and so keeps halves within their range.
// The second, whose x they are, ends it: it multiplies its sums by
//   1 / sqrt(sum over k of y[r, k]^2 / inputs + epsilon) / guess[r]
// Guesses, [kMostNormRows] f32, are the first of norm_state; after them come the squares that the groups
// of the first product found, [kMostNormRows, groups] f32.
HEARTH_CONSTANT(kNormNone, 0u)
HEARTH_CONSTANT(kNormBegins, 1u)
HEARTH_CONSTANT(kNormEnds, 2u)
HEARTH_CONSTANT(kMostNormRows, 16u)
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
  address norm_weight;  // [inputs] f32; where a norm is begun [outputs]
  address counts;       // of shared tiles: a u32 each, zero: groups that are done
  address shared_parts; // [shared tiles, groups of each, rows of a tile, outputs of a tile] f32
  address norm_state;   // of a norm that is begun or ended
  address begun;        // [rows, outputs] f16
  uint rows;
  uint inputs;
  uint outputs;
  float soft_cap;
  float epsilon;  // of the norm
  uint whole_tiles;  // that have a group each; the others are shared
  uint part_stride;  // of a split product: floats from row to row of its parts
  uint first_output; // of matmul_wide's first tile; those before are another dispatch's
HEARTH_PARAMS_END

#endif
