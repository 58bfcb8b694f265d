// The MLP of a mixture of experts: every row is computed by a few experts, each a gated MLP with
// matrices of its own, and the results are added with weights.
//
//   chosen[r] = the `used` experts with the largest logits[r]
//   weight[r, e] = exp(logits[r, e]) / sum of exp(logits[r]) over the chosen experts, or over all
//   y[r] += sum over the chosen e, the likeliest first, of
//           weight[r, e] * (down[e] * gate(gate_up[e] * x[r] + gate_up_bias[e]) + down_bias[e])
//
// Everything is decided on the device, so a recorded step can be replayed: dispatches are sized for
// the worst case, and workgroups look up their expert. With few rows a tile is one pair of a row
// and an expert, for which the first product's workgroups may choose the expert themselves; with
// more, pairs are grouped by expert first, so that an expert's weights are read once.
//
// Usage: choose_experts() once per bucket; record_experts() once per layer of it.
#pragma once

#include <optional>

#include "engine/ops/cost.h"
#include "engine/ops/kernel_plan.h"
#include "engine/ops/matmul.h"
#include "runtime/buffer.h"
#include "runtime/command_recorder.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth {

// kLimited: gpt-oss's min(g, 7) * sigmoid(1.702 * min(g, 7)) * (clamp(u, -7, 7) + 1).
enum class ExpertActivation : uint8_t { kSilu, kLimited };

struct ExpertsShape {
  WeightFormat gate_up = WeightFormat::kF16, down = WeightFormat::kF16;
  uint32_t rows = 0;
  uint32_t experts = 0, used = 0;  // used <= experts <= kMostExperts, used <= kMostUsedExperts
  uint32_t width = 0;              // of x and y
  uint32_t mlp_width = 0;          // of an expert; both widths are multiples of 4
  ExpertActivation activation = ExpertActivation::kSilu;
  bool over_all = false;  // weights are shares of all experts, not only of the chosen ones
};
inline constexpr uint32_t kMostExperts = 1024;
inline constexpr uint32_t kMostUsedExperts = 64;

// One of the two products.
struct ExpertProduct {
  KernelPlan kernel;
  bool half_results = false;  // with gates
  bool can_norm = false;      // can apply an RMS norm to x first
  bool all_rows = false;      // workgroups have all rows of a step instead of tiles
  bool sums = false;          // adds up the experts of each row
};

struct ExpertsPlan {
  std::optional<KernelPlan> route;    // chooses the experts, if the first product does not
  std::optional<KernelPlan> group;    // if tiles have several rows
  std::optional<KernelPlan> prepare;  // converts x to f16, which the products then read
  ExpertProduct gate_up, down;
  // Adds up a row's experts; without it, the second product does.
  std::optional<KernelPlan> combine;
  bool halves = false;  // x and the rows between the products are f16
  uint32_t tile_rows = 1, tiles = 0;

  bool can_norm() const { return gate_up.can_norm; }
  uint32_t positions() const { return tiles * tile_rows; }
  uint64_t scratch_bytes = 0;
};

// `deterministic`: a row's result does not depend on the other rows.
ExpertsPlan choose_experts(const DeviceCaps& caps, const ExpertsShape& shape,
                           bool deterministic = false);

// How many experts at least one row chooses, on average, if all are equally likely.
double touched_experts(const ExpertsShape& shape);
// The weights of these experts once, and the rows that each product reads and writes, as floats.
OpCost experts_cost(const ExpertsShape& shape);

// The matrices of all experts, each in device layout, all in one format.
struct ExpertWeights {
  BufferSlice matrices;       // the first expert's, and the others that are in the same buffer
  uint64_t stride_bytes = 0;  // from expert to expert, a multiple of 16; 0: as the table says
  std::optional<BufferSlice> table;  // [experts] u64 addresses, if they are in several buffers
  // [experts, outputs] f32, followed by kBiasPadBytes of any content.
  std::optional<BufferSlice> bias;
};
// Kernels read whole fragments of biases.
inline constexpr uint64_t kBiasPadBytes = 64;

// An RMS norm of x, as rms_norm applies it.
struct ExpertNorm {
  BufferSlice weight;  // [width] f32
  float epsilon = 0;
};

struct Experts {
  BufferSlice x;          // [rows, width] f32
  BufferSlice logits;     // [rows, experts] f32
  BufferSlice y;          // [rows, width] f32: added to
  ExpertWeights gate_up;  // [2 * mlp_width, width] each, gates first
  ExpertWeights down;     // [width, mlp_width] each
  BufferSlice scratch;    // plan.scratch_bytes
  // Leaves each expert's result in the scratch memory, as plan_expert_parts() says, instead of
  // adding them to y.
  bool leaves_parts = false;
  std::optional<ExpertNorm> norm = {};  // applied to x first; needs plan.can_norm()
  ExpertsShape shape;
};

// Where the results are that the next op can add up; empty if they are grouped by expert, or if the
// second product adds them up. Pure.
std::optional<PartsPlan> plan_expert_parts(const ExpertsPlan& plan, const ExpertsShape& shape);

// Records the kernels. Fails if they do not support the shape, if scratch memory is too small, or
// if a kernel cannot be compiled.
Status record_experts(CommandRecorder& recorder, PipelineStore& pipelines, const ExpertsPlan& plan,
                      const Experts& op);

}  // namespace hearth
