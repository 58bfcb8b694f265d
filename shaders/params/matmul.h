#ifndef HEARTH_PARAMS_MATMUL_H
#define HEARTH_PARAMS_MATMUL_H
#include "common/interop.h"
#include "params/epilogue.h"

// y[r, n] = cap(sum over k of weight[n, k] * x[r, k] + bias[n]) + residual[r, n]
// where cap(v) = soft_cap * tanh(v / soft_cap).
// Which of bias, soft cap and residual apply (the epilogue) is a specialization constant (epilogue.h).

// An RMS norm before a product of one row can be fused into the product, which then uses
//   x[k] * norm_weight[k] / sqrt(sum over k of x[k]^2 / inputs + epsilon)
// An RMS norm between two products of a few rows can be split between them. The first product starts it:
// in addition to y it writes
//   prescaled[r, n] = y[r, n] * norm_weight[n] * guess[r], as f16
// where guess[r] is the scale that an earlier norm had for that row, which keeps the halves in range.
// The second product, whose x is `prescaled`, finishes it: it multiplies its sums by
//   1 / sqrt(sum over k of y[r, k]^2 / inputs + epsilon) / guess[r]
// norm_state begins with the guesses, [kMostNormRows] f32, followed by the sums of squares from each
// workgroup of the first product, [kMostNormRows, workgroups] f32.
HEARTH_CONSTANT(kNormNone, 0u)
HEARTH_CONSTANT(kNormStarts, 1u)
HEARTH_CONSTANT(kNormFinishes, 2u)
HEARTH_CONSTANT(kMostNormRows, 16u)
// The activation of a gated MLP can be fused too: the first half of the matrix's outputs are gates, the
// second half ups:
//   y[r, n] = act(sum[r, n]) * sum[r, n + outputs / 2]

HEARTH_PARAMS(Matmul)
  reads_address weight;          // [outputs, inputs] in the kernel's weight format, device layout
  reads_address x;               // [rows, inputs] f32, or f16 as half_rows writes it
  writes_address y;              // [rows, outputs] f32
  reads_address bias;            // [outputs] f32
  reads_address residual;        // [rows, outputs] f32; may be y
  reads_address norm_weight;     // [inputs] f32; if this product starts a norm, [outputs]
  updates_address counts;        // [tail tiles] u32, zero: finished workgroups of each
  writes_address tail_partials;  // [tail tiles, kTailSplits, rows of a tile, outputs of a tile] f32 partial sums
  updates_address norm_state;    // if this product starts or finishes a norm
  writes_address prescaled;      // [rows, outputs] f16, if this product starts a norm
  uint rows;
  uint inputs;
  uint outputs;
  float soft_cap;
  float epsilon;                 // of the norm
  uint whole_tiles;              // tiles with one workgroup each; the rest are tail tiles, with kTailSplits each
  uint partial_stride;           // split-k: floats from row to row of the partial sums
  uint first_output;             // of matmul_wide's first tile; another dispatch computes those before it
HEARTH_PARAMS_END

#endif
