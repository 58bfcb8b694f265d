// Matrix times many vectors, for GPUs without matrix units, and for F32 weights on any GPU. The
// formula is in params/matmul.h.
//
// A workgroup computes a tile of kTileRows x kTileOutputs sums, each lane a register block of kLaneRows x
// kLaneOutputs, in steps of kTileInputs along k: the next step's operands are loaded into registers
// while this step's are multiplied, from f32 tiles in shared memory. kSplits > 1 is split-k: the
// workgroups of a tile each take a part of k and write partial sums to scratch memory, [split, row,
// output] with rows rounded up to whole tiles, for matmul_reduce to add.
//   workgroups = [ceil(rows / kTileRows), ceil(outputs / kTileOutputs), kSplits]
// Rows vary fastest, so that workgroups that run at the same time read the same weights.
// REQUIRES: inputs a multiple of the format's block and of 8, addresses multiples of 16.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "quant/glsl.h"
#include "weight_format.h"
#include "common/weight_chunk_f32.glsl"
#include "params/matmul_tile.h"
#ifdef EXPERTS
#include "common/chain.glsl"
#include "common/activation.glsl"
#endif
#include "common/matmul_output.glsl"

// In quads; the padding keeps neighbouring rows in different banks.
const uint kTileStride = kTileInputs / 4 + 2;

shared vec4 x_tile[kTileRows * kTileStride];
shared vec4 w_tile[kTileOutputs * kTileStride];

#ifdef EXPERTS

// The row of the matrix that is column `column` of the tile. With gates, the first half of the columns
// are gates and the second half their ups, so that one lane holds both.
uint weight_row(uint first_output, uint column) {
  if (kGate == kGateNone) return min(first_output + column, params.outputs - 1);
  const uint half_columns = kTileOutputs / 2, results = params.outputs / 2;
  return min(first_output / 2 + column % half_columns, results - 1) + column / half_columns * results;
}
#else
#define weight_row(first_output, column) min(first_output + column, params.outputs - 1)

void store_sum(uint row, uint n, float value) {
  if (row >= params.rows || n >= params.outputs) return;
  if (kSplits == 1) {
    store_output(row, n, value, load_residual(row, n));
  } else {
    const uint part_row = gl_WorkGroupID.z * gl_NumWorkGroups.x * kTileRows + row;
    F32(params.y).at[part_row * params.partial_stride + n] = value;
  }
}
#endif

// The lanes of a workgroup form a grid, outputs fastest.
const uint kLanesAcross = kTileOutputs / kLaneOutputs;

const uint kSums = kLaneRows * kLaneOutputs;
#define Sums float sums[kSums]

void clear_sums(out Sums) {
  [[unroll]] for (uint i = 0; i < kSums; ++i) sums[i] = 0.0;
}

void multiply(inout Sums) {
  const uint row = gl_LocalInvocationIndex / kLanesAcross;
  const uint column = gl_LocalInvocationIndex % kLanesAcross;
  const uint rows_apart = kTileRows / kLaneRows;
  for (uint k = 0; k < kTileInputs / 4; ++k) {
    vec4 x[kLaneRows];
    [[unroll]] for (uint r = 0; r < kLaneRows; ++r)
      x[r] = x_tile[(row + r * rows_apart) * kTileStride + k];
    [[unroll]] for (uint o = 0; o < kLaneOutputs; ++o) {
      const vec4 w = w_tile[(column + o * kLanesAcross) * kTileStride + k];
      [[unroll]] for (uint r = 0; r < kLaneRows; ++r)
        sums[r * kLaneOutputs + o] += dot(x[r], w);
    }
  }
}

void store_sums(Sums, uint first_row, uint first_output) {
  const uint row = gl_LocalInvocationIndex / kLanesAcross;
  const uint column = gl_LocalInvocationIndex % kLanesAcross;
  const uint rows_apart = kTileRows / kLaneRows;
#ifdef EXPERTS
  const uint lane_results = kGate == kGateNone ? kLaneOutputs : kLaneOutputs / 2;
  const uint results = kGate == kGateNone ? params.outputs : params.outputs / 2;
  const uint first = (kGate == kGateNone ? first_output : first_output / 2) + column;
  [[unroll]] for (uint r = 0; r < kLaneRows; ++r) {
    const uint position = first_row + row + r * rows_apart;
    [[unroll]] for (uint o = 0; o < lane_results; ++o) {
      const uint n = first + o * kLanesAcross;
      if (position >= params.rows || n >= results) continue;
      const float sum = sums[r * kLaneOutputs + o];
      if (kGate == kGateNone) {
        store_output(position, n, sum, 0.0);
      } else {
        const float up = sums[r * kLaneOutputs + o + lane_results];
        F32(params.y).at[position * results + n] =
            GATED(sum + expert_bias(n), up + expert_bias(n + results));
      }
    }
  }
#else
  [[unroll]] for (uint r = 0; r < kLaneRows; ++r)
    [[unroll]] for (uint o = 0; o < kLaneOutputs; ++o)
      store_sum(first_row + row + r * rows_apart, first_output + column + o * kLanesAcross,
                sums[r * kLaneOutputs + o]);
#endif
}

// How a tile's loads are distributed: every lane loads the same number of chunks of weights and of quads
// of x, and neighbouring lanes load neighbouring ones.
const uint kRowChunks = kTileInputs / kChunkWeights;
const uint kWeightLoads = DIVIDE_UP(kTileOutputs * kRowChunks, gl_WorkGroupSize.x);
const uint kRowQuads = kTileInputs / 4;
const uint kXLoads = DIVIDE_UP(kTileRows * kRowQuads, gl_WorkGroupSize.x);

// Operands in flight from memory to the tiles.
#define Fetched Chunk weights[kWeightLoads], inout vec4 xs[kXLoads]

// Loads past an end are clamped to the last element; past the end of k, stage() writes zeros.
void fetch(inout Fetched, Planes planes, uint first_row, uint first_output, uint k) {
  const uint chunks = params.inputs / kChunkWeights;
  [[unroll]] for (uint i = 0; i < kWeightLoads; ++i) {
    const uint index = gl_LocalInvocationIndex + i * gl_WorkGroupSize.x;
    const uint n = weight_row(first_output, index / kRowChunks);
    const uint chunk = min(k / kChunkWeights + index % kRowChunks, chunks - 1);
    weights[i] = load_chunk(planes, n * chunks + chunk);
  }
  F32x4 x = F32x4(params.x);
  const uint quads = params.inputs / 4;
  [[unroll]] for (uint i = 0; i < kXLoads; ++i) {
    const uint index = gl_LocalInvocationIndex + i * gl_WorkGroupSize.x;
    const uint row = X_ROW(min(first_row + index / kRowQuads, params.rows - 1));
    const uint quad = min(k / 4 + index % kRowQuads, quads - 1);
    xs[i] = x.at[row * quads + quad];
  }
}

void stage(inout Fetched, uint k) {
  [[unroll]] for (uint i = 0; i < kWeightLoads; ++i) {
    const uint index = gl_LocalInvocationIndex + i * gl_WorkGroupSize.x;
    const uint place = index / kRowChunks * kTileStride + index % kRowChunks * (kChunkWeights / 4);
    const bool inside = k + index % kRowChunks * kChunkWeights < params.inputs;
    if (index < kTileOutputs * kRowChunks) {
      [[unroll]] for (uint v = 0; v < kChunkWeights / 4; ++v)
        w_tile[place + v] = inside ? chunk_quad(weights[i], v) : vec4(0.0);
    }
  }
  [[unroll]] for (uint i = 0; i < kXLoads; ++i) {
    const uint index = gl_LocalInvocationIndex + i * gl_WorkGroupSize.x;
    const bool inside = k + index % kRowQuads * 4 < params.inputs;
    if (index < kTileRows * kRowQuads)
      x_tile[index / kRowQuads * kTileStride + index % kRowQuads] = inside ? xs[i] : vec4(0.0);
  }
}

void main() {
#ifdef EXPERTS
  if (!begin_expert(gl_WorkGroupID.x)) {
    chain_done();
    return;
  }
#endif
  const uint first_row = gl_WorkGroupID.x * kTileRows;
  const uint first_output = gl_WorkGroupID.y * kTileOutputs;
  const Planes planes = planes_at(EXPERT_WEIGHTS, params.outputs * (params.inputs / kBlockWeights));

  // This workgroup's part of k, in whole steps.
  const uint steps = DIVIDE_UP(params.inputs, kTileInputs);
  const uint share = DIVIDE_UP(steps, kSplits);
  const uint begin = gl_WorkGroupID.z * share * kTileInputs;
  const uint end = min(steps, (gl_WorkGroupID.z + 1) * share) * kTileInputs;

  Chunk weights[kWeightLoads];
  vec4 xs[kXLoads];
  Sums;
  clear_sums(sums);
  if (begin < end) fetch(weights, xs, planes, first_row, first_output, begin);
  for (uint k = begin; k < end; k += kTileInputs) {
    stage(weights, xs, k);
    barrier();
    if (k + kTileInputs < end)
      fetch(weights, xs, planes, first_row, first_output, k + kTileInputs);
    multiply(sums);
    barrier();
  }
  store_sums(sums, first_row, first_output);
#ifdef EXPERTS
  chain_done();
#endif
}
