// Matrix times a few vectors, for GPUs, in float arithmetic. The formula is in params/matmul.h.
//
// A subgroup computes kOutputs neighbouring outputs for kRows rows of x; its lanes go along k, one chunk
// of weights each, with kAhead * kOutputs chunks in flight.
//   workgroups = [ceil(outputs / (kOutputs * subgroups per workgroup)), ceil(rows / kRows), 1]
// REQUIRES: inputs a multiple of the chunk, addresses multiples of 16, full subgroups of kOutputs
// lanes or more.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "quant/glsl.h"
#include "weight_format.h"
#include "common/activation.glsl"
#include "common/weight_chunk_f32.glsl"
#ifdef EXPERTS
#define EXPERT_ROWS
#endif
#include "params/matvec_float.h"
#include "common/chain.glsl"
#include "common/matmul_output.glsl"

// With gates, the first half of a subgroup's outputs are gates and the second half their ups.
const uint kResults = kGate == kGateNone ? kOutputs : kOutputs / 2;
const uint kChunkQuads = kChunkWeights / 4;

// Where this subgroup's rows of weights and of x begin, in chunks.
struct Rows {
  uint w[kOutputs];
  uint x[kRows];
};

const uint kStepChunks = kAhead * kOutputs;
const uint kSums = kRows * kOutputs;

void load_step(out Chunk w[kStepChunks], Planes planes, Rows rows, uint chunk) {
  [[unroll]] for (uint a = 0; a < kAhead; ++a)
    [[unroll]] for (uint o = 0; o < kOutputs; ++o)
      w[a * kOutputs + o] = load_chunk(planes, rows.w[o] + chunk + a * gl_SubgroupSize);
}

void multiply_step(inout float sum[kSums], Chunk w[kStepChunks], Rows rows, uint chunk) {
  [[unroll]] for (uint a = 0; a < kAhead; ++a)
    [[unroll]] for (uint r = 0; r < kRows; ++r)
      [[unroll]] for (uint o = 0; o < kOutputs; ++o)
        sum[r * kOutputs + o] +=
            dot_chunk(w[a * kOutputs + o], F32x4(params.x),
                      (rows.x[r] + chunk + a * gl_SubgroupSize) * kChunkQuads);
}

void main() {
#ifdef EXPERTS
  if (!begin_expert(gl_WorkGroupID.y)) {
    chain_done();
    return;
  }
#endif
  const uint results = kGate == kGateNone ? params.outputs : params.outputs / 2;
  const uint first = (gl_WorkGroupID.x * gl_NumSubgroups + gl_SubgroupID) * kResults;
  const uint first_row = gl_WorkGroupID.y * kRows;

  const uint chunks = params.inputs / kChunkWeights;  // in a row
  const Planes planes = planes_at(EXPERT_WEIGHTS, params.outputs * (params.inputs / kBlockWeights));
  // Outputs and rows past the last are clamped to it: loads stay in bounds, the sums are dropped.
  Rows rows;
  [[unroll]] for (uint o = 0; o < kOutputs; ++o)
    rows.w[o] = (min(first + o % kResults, results - 1) + o / kResults * results) * chunks;
  [[unroll]] for (uint r = 0; r < kRows; ++r)
    rows.x[r] = X_ROW(min(first_row + r, params.rows - 1)) * chunks;

  float sum[kSums];
  [[unroll]] for (uint i = 0; i < kSums; ++i) sum[i] = 0.0;

  // The first weights are in flight before this kernel waits for x.
  const uint stride = kAhead * gl_SubgroupSize, reach = (kAhead - 1) * gl_SubgroupSize;
  uint chunk = gl_SubgroupInvocationID;
  Chunk w[kStepChunks];
  if (chunk + reach < chunks) load_step(w, planes, rows, chunk);
#ifndef EXPERTS
  chain_wait();
#endif
  // The residuals are loaded early so that they arrive before the sums are done; lane o has output o's.
  const uint own_output = first + gl_SubgroupInvocationID;
  float residuals[kRows];
  [[unroll]] for (uint r = 0; r < kRows; ++r)
    residuals[r] = load_residual(first_row + r, own_output);
  if (chunk + reach < chunks) {
    multiply_step(sum, w, rows, chunk);
    chunk += stride;
  }
  for (; chunk + reach < chunks; chunk += stride) {
    load_step(w, planes, rows, chunk);
    multiply_step(sum, w, rows, chunk);
  }
  for (; chunk < chunks; chunk += gl_SubgroupSize) {
    [[unroll]] for (uint o = 0; o < kOutputs; ++o) {
      const Chunk last = load_chunk(planes, rows.w[o] + chunk);
      [[unroll]] for (uint r = 0; r < kRows; ++r)
        sum[r * kOutputs + o] +=
            dot_chunk(last, F32x4(params.x), (rows.x[r] + chunk) * kChunkQuads);
    }
  }

  [[unroll]] for (uint r = 0; r < kRows; ++r) {
    [[unroll]] for (uint o = 0; o < kResults; ++o) {
      const float total = subgroupAdd(sum[r * kOutputs + o]);
      float up = 0.0;
      if (kGate != kGateNone) up = subgroupAdd(sum[r * kOutputs + o + kResults]);
      const uint n = first + o;
      if (gl_SubgroupInvocationID == o && n < results && first_row + r < params.rows) {
        if (kGate != kGateNone) {
#ifdef EXPERTS
          F32(params.y).at[(first_row + r) * results + n] =
              GATED(total + expert_bias(n), up + expert_bias(n + results));
#else
          F32(params.y).at[(first_row + r) * results + n] =
              activate(total, kGate == kGateGelu) * up;
#endif
        } else {
          store_output(first_row + r, n, total, residuals[r]);
        }
      }
    }
  }
  chain_done();
}
