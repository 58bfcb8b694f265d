// Matrix times one vector, for GPUs, in float arithmetic. The formula is in params/matmul.h.
//
// A workgroup of teams (common/team.glsl) in which each lane has kChunks chunks of k: a lane loads only
// that part of x, once, and applies the RMS norm to it. As soon as a chunk of weights has been multiplied,
// the next round's is loaded into the same registers; the first round's are in flight before this kernel
// waits for x.
//   workgroups = [ceil(results / (kRounds * kTeams * kResults)), rows, 1]
// REQUIRES: a float format, one row of x unless weights are F32, inputs a multiple of the chunk, addresses
// multiples of 16.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common/kernel.glsl"
#include "quant/glsl.h"
#include "weight_format.h"
#include "common/activation.glsl"
#include "common/weight_chunk_f32.glsl"
#ifdef EXPERTS
#define EXPERT_ROWS
#define EXPERT_FRESH_X
#endif
#include "params/matvec_team.h"
#include "common/chain.glsl"
#include "common/matmul_output.glsl"

const uint kRows = 1;
#include "common/team.glsl"

const uint kRowChunks = kInputs / kChunkWeights;
const uint kChunks = DIVIDE_UP(kRowChunks, kTeamLanes);
const uint kRoundChunks = kOutputs * kChunks;
const uint kChunkQuads = kChunkWeights / 4, kXQuads = kChunks * kChunkQuads;

// Where a lane's weights of a round begin, for the first result and for its up. Its other weights are
// multiples of a row, or of kTeamLanes chunks, further on. Because kInputs is a constant, so are these
// offsets, and loads need no instructions to compute their addresses.
struct WeightAddresses {
  uint64_t result, up;
};

WeightAddresses weight_addresses(uint first, uint chunk) {
  WeightAddresses addresses;
  addresses.result = EXPERT_WEIGHTS + uint64_t(first * kRowChunks + chunk) * 16;
  addresses.up = addresses.result + uint64_t(result_count() * kRowChunks) * 16;
  return addresses;
}

// The lane's c-th chunk of output o; `chunk` is its first. Chunks past the end of a row are clamped to
// the last, so that loads stay in bounds; x is 0 for them.
Chunk weight_at(WeightAddresses addresses, uint o, uint c, uint chunk) {
  uint offset = c * kTeamLanes;
  if ((c + 1) * kTeamLanes > kRowChunks) offset = min(chunk + offset, kRowChunks - 1) - chunk;
  return load_16b(o < kResults ? addresses.result : addresses.up, o % kResults * kRowChunks + offset);
}

// Quad i of the lane's part of the inputs.
uint lane_quad(uint i, uint team_lane) {
  const uint chunk = min(team_lane + i / kChunkQuads * kTeamLanes, kRowChunks - 1);
  return chunk * kChunkQuads + i % kChunkQuads;
}

float dot_weight(Chunk w, vec4 x[kXQuads], uint c) {
  float sum = 0.0;
  [[unroll]] for (uint i = 0; i < kChunkQuads; ++i) sum += dot(chunk_quad(w, i), x[c * kChunkQuads + i]);
  return sum;
}

// The row of the result. Experts' products and those of F32, which routers have, may have several, in
// workgroups of their own.
#if defined(EXPERTS)
#define TEAM_ROW gl_WorkGroupID.y
#define TEAM_X x_row
#elif defined(WEIGHT_F32)
#define TEAM_ROW gl_WorkGroupID.y
#define TEAM_X params.x + uint64_t(TEAM_ROW) * (kInputs * 4)
#else
#define TEAM_ROW 0
#define TEAM_X params.x
#endif

void main() {
#ifdef EXPERTS
  if (!begin_expert(gl_WorkGroupID.y)) {
    chain_done();
    return;
  }
  const uint64_t x_row = params.x + uint64_t(source_row(TEAM_ROW)) * (kInputs * 4);
#endif
  const uint team_lane = workgroup_lane() % kTeamLanes, chunk = min(team_lane, kRowChunks - 1);

  WeightAddresses addresses = weight_addresses(team_first_result(0, team_id()), chunk);
  Chunk w[kRoundChunks];
  [[unroll]] for (uint o = 0; o < kOutputs; ++o)
    [[unroll]] for (uint c = 0; c < kChunks; ++c) w[o * kChunks + c] = weight_at(addresses, o, c, chunk);
  vec4 norm[kXQuads];
  [[unroll]] for (uint i = 0; i < kXQuads; ++i)
    if (kNorm != 0) norm[i] = F32x4(params.norm_weight).at[lane_quad(i, team_lane)];
#ifndef EXPERTS
  chain_wait_fresh();
#endif
  vec4 x[kXQuads];
  [[unroll]] for (uint i = 0; i < kXQuads; ++i) {
    x[i] = FreshF32x4(TEAM_X).at[lane_quad(i, team_lane)];
    if (team_lane + i / kChunkQuads * kTeamLanes >= kRowChunks) x[i] = vec4(0.0);
  }
  float residuals[kLaneResults];
  load_residuals(residuals, TEAM_ROW);
  if (kNorm != 0) {
    float squares = 0.0;
    [[unroll]] for (uint i = 0; i < kXQuads; ++i) {
      squares += dot(x[i], x[i]);
      x[i] *= norm[i];
    }
    stage_squares(squares);
  }

  float sums[kSums];
  [[dont_unroll]] for (uint round = 0; round + 1 < kRounds; ++round) {
    addresses = weight_addresses(team_first_result(round + 1, team_id()), chunk);
    [[unroll]] for (uint o = 0; o < kOutputs; ++o) {
      sums[o] = 0.0;
      [[unroll]] for (uint c = 0; c < kChunks; ++c) {
        sums[o] += dot_weight(w[o * kChunks + c], x, c);
        w[o * kChunks + c] = weight_at(addresses, o, c, chunk);
      }
    }
    stage_sums(sums, round);
  }
  [[unroll]] for (uint o = 0; o < kOutputs; ++o) {
    sums[o] = 0.0;
    [[unroll]] for (uint c = 0; c < kChunks; ++c) sums[o] += dot_weight(w[o * kChunks + c], x, c);
  }
  stage_sums(sums, kRounds - 1);

  barrier();  // sums and squares are in shared memory
  store_results(kNorm != 0 ? norm_scale(kTeamSubgroups) : 1.0, residuals, TEAM_ROW);
  results_done();
}
