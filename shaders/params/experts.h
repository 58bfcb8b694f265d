#ifndef HEARTH_PARAMS_EXPERTS_H
#define HEARTH_PARAMS_EXPERTS_H
#include "common/interop.h"
#include "params/epilogue.h"
#include "params/expert_tiles.h"

// A product in which each tile of rows has its expert's matrix:
//   y[p, n] = (sum over k of weight[expert(p), n, k] * x[source(p), k] + bias[expert(p), n]) * scale[p]
// where expert(p) = tiles[p / tile rows]. Bias and scale are optional (kEpilogue). With gates, the first
// half of a matrix's outputs are gates and the second half their ups:
//   y[p, n] = gate(sum[p, n] + bias[n], sum[p, n + outputs / 2] + bias[n + outputs / 2])
// Positions are pairs of a row and one of its experts, either in the order of rows or, if tiles have
// several rows, grouped by expert (group_experts.comp).
//
// Kernels in which a tile is a position can choose the experts themselves (kRouteUsed) and apply the RMS
// norm to x first (kNorm). Kernels of sums add up all experts of a row, y has a row per row of x:
//   y[r, n] += sum over positions p of row r of
//              (sum over k of weight[expert(p), n, k] * x[p, k] + bias[expert(p), n]) * scale[p]
HEARTH_CONSTANT(kEpilogueScale, 8u)
HEARTH_CONSTANT(kGateLimited, 3u)
// With kGateSilu, gate(g, u) = silu(g) * u; with kGateLimited
//   gate(g, u) = min(g, 7) * sigmoid(1.702 * min(g, 7)) * (clamp(u, -7, 7) + 1)
HEARTH_PARAMS(Experts)
  reads_address weight;       // the first expert's matrix, [outputs, inputs] in the kernel's weight format, device
                              // layout; if weight_stride is 0, [experts] u64: where each expert's matrix is
  reads_address x;            // [rows, inputs] f32, or f16 as half_rows writes it
  updates_address y;          // [positions, outputs] f32; with gates [positions, outputs / 2], f32 or f16
  reads_address bias;         // [experts, outputs] f32
  updates_address tiles;      // [tiles] u32: the expert of each tile, or kNoExpert. Written with kRouteUsed
  reads_address sources;      // [positions] u32: the row of x of each position; only if row_pairs is 0
  updates_address scales;     // [positions] f32. Written with kRouteUsed, as route.comp says
  reads_address logits;       // [rows, experts] f32; only with kRouteUsed
  reads_address norm_weight;  // [inputs] f32; only with kNorm
  uint64_t weight_stride;     // bytes from expert to expert
  uint rows;                  // positions
  uint inputs;
  uint outputs;
  uint row_pairs;             // position p has row p / row_pairs of x; 0: sources[p]
  uint experts;               // only with kRouteUsed
  float epsilon;              // only with kNorm
  HEARTH_FINDS_TO_READ(matrices)  // of the experts
HEARTH_PARAMS_END

#endif
