// Matrix times a few vectors, for GPUs with packed 8-bit dot products. The formula is in
// params/matmul.h.
//
// A workgroup of teams (common/team.glsl) in which each lane has kPieces pieces of 32 weights. The
// workgroup quantizes x once, for all of its teams, to 15 bits and a sign (common/quantize_x.glsl), and
// holds it in registers; each piece of weights is then summed exactly. The next round's weights are in
// flight while one round's are multiplied, and the first round's before this kernel waits for x.
//   workgroups = [ceil(results / (kRounds * kTeams * kResults)), ceil(rows / kRows), 1]
// Experts' products have one row of x per workgroup, that of one of its experts or, with EXPERT_SUMS, those
// of all.
// REQUIRES: a quantized format, subgroups of 8 or more, kTeams 1, 2, 4 or 8, inputs <= 32 * kPieces * lanes
// of a team.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_integer_dot_product : require
#include "common/kernel.glsl"
#include "quant/glsl.h"
#include "weight_format.h"
#include "common/activation.glsl"
#ifdef EXPERTS
#define EXPERT_ROWS
#define EXPERT_FRESH_X
#endif
#include "params/matvec_integer.h"
#include "common/chain.glsl"
#include "common/matmul_output.glsl"

#include "common/team.glsl"

#ifdef EXPERT_SUMS
// The positions of a row, one for each of its experts, follow each other as if they were one longer row,
// and so do the experts' rows of weights.
const uint kExpertPieces = kExpertInputs / kPieceWeights;
uint row_pieces() { return params.row_pairs * kExpertPieces; }
uint position_of(uint place) { return gl_WorkGroupID.y * params.row_pairs + place / kExpertPieces; }
#else
uint row_pieces() { return params.inputs / kPieceWeights; }
#endif

// The quad of x that is quantized. With kNorm it is multiplied by the norm's weights; the norm's scale
// is applied to the sums.
float row_squares = 0.0;  // over the quads that this lane has loaded
vec4 x_quad(uint64_t x, uint quad) {
  vec4 values = FreshF32x4(x).at[quad];
  if (kNorm != 0) {
    row_squares += dot(values, values);
    values *= F32x4(params.norm_weight).at[quad];
  }
#ifdef EXPERT_SUMS
  values *= FreshF32(params.scales).at[position_of(quad * 4 / kPieceWeights)];
#endif
  return values;
}
#include "common/quantize_x.glsl"

float dot_piece(Piece w, QuantizedPiece x) {
  int high0 = 0, high1 = 0, low0 = 0, low1 = 0;
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    high0 += dotPacked4x8EXT(int(w.q[i]), int(x.high[i]));
    low0 += dotPacked4x8EXT(int(w.q[i]), int(x.low[i]));
    high1 += dotPacked4x8EXT(int(w.q[i + 4]), int(x.high[i + 4]));
    low1 += dotPacked4x8EXT(int(w.q[i + 4]), int(x.low[i + 4]));
  }
  if (kPieceScales == 1) {
    const float sum = w.scale0 * x.scale * float((high0 + high1) * 256 + low0 + low1);
    return kHasOffset ? sum + w.offset0 * (x.sum0 + x.sum1) : sum;
  }
  const float sum = x.scale * (w.scale0 * float(high0 * 256 + low0) +
                               w.scale1 * float(high1 * 256 + low1));
  return kHasOffset ? sum + w.offset0 * x.sum0 + w.offset1 * x.sum1 : sum;
}

const uint kRoundPieces = kOutputs * kPieces;

// Piece `place` of a round's output o. Pieces past the end of a row are clamped to the last, so that
// loads stay in bounds; x is 0 for them.
#ifdef EXPERT_SUMS
uint weight_piece(uint first, uint o, uint place) {
  return (first + o) * kExpertPieces + min(place, row_pieces() - 1) % kExpertPieces;
}

// The lane's pieces may be those of different experts.
const uint kMatrices = kPieces;
void find_matrices(out Planes matrices[kMatrices], uint lane) {
  [[unroll]] for (uint i = 0; i < kPieces; ++i) {
    const uint place = min(lane + i * kTeamLanes, row_pieces() - 1);
    const uint64_t matrix = matrix_of(FreshU32(params.tiles).at[position_of(place)]);
    matrices[i] = planes_at(matrix, params.outputs * (kExpertInputs / kBlockWeights));
  }
}
#else
uint weight_piece(uint first, uint o, uint place) {
  const uint pieces = params.inputs / kPieceWeights;
  const uint n = first + o % kResults + o / kResults * result_count();
  return n * pieces + min(place, pieces - 1);
}

const uint kMatrices = 1;
void find_matrices(out Planes matrices[kMatrices], uint lane) {
  matrices[0] = planes_at(EXPERT_WEIGHTS, params.outputs * (params.inputs / kBlockWeights));
}
#endif

void load_round(out RawPiece w[kRoundPieces], Planes matrices[kMatrices], uint first, uint lane) {
  [[unroll]] for (uint o = 0; o < kOutputs; ++o)
    [[unroll]] for (uint i = 0; i < kPieces; ++i)
      w[o * kPieces + i] =
          load_piece(matrices[i % kMatrices], weight_piece(first, o, lane + i * kTeamLanes));
}

const uint kXPieces = kRows * kPieces;

void multiply_round(RawPiece w[kRoundPieces], QuantizedPiece x[kXPieces], uint round, uint first,
                    uint lane) {
  float sums[kSums];  // [output, row]
  [[unroll]] for (uint o = 0; o < kOutputs; ++o) {
    [[unroll]] for (uint r = 0; r < kRows; ++r) sums[o * kRows + r] = 0.0;
    [[unroll]] for (uint i = 0; i < kPieces; ++i) {
      const uint place = lane + i * kTeamLanes;
      // If blocks have several pieces, a piece's position in its block is the same in every row.
      const uint index = kBlockWeights > kPieceWeights ? place : weight_piece(first, o, place);
      const Piece piece = decode_piece(w[o * kPieces + i], index);
      [[unroll]] for (uint r = 0; r < kRows; ++r)
        sums[o * kRows + r] += dot_piece(piece, x[r * kPieces + i]);
    }
  }
  stage_sums(sums, round);
}

void main() {
#if defined(EXPERT_SUMS)
  chain_wait_fresh();
#elif defined(EXPERTS)
  if (!begin_expert(gl_WorkGroupID.y)) {
    chain_done();
    return;
  }
#endif
  const uint team_lane = workgroup_lane() % kTeamLanes;
  const uint first_row = gl_WorkGroupID.y * kRows;
  const uint pieces = row_pieces();
  Planes matrices[kMatrices];
  find_matrices(matrices, team_lane);

  RawPiece w[kRoundPieces];
  load_round(w, matrices, team_first_result(0, team_id()), team_lane);
#ifndef EXPERTS
  chain_wait_fresh();
#endif
  float residuals[kLaneResults];
  load_residuals(residuals, first_row);
  QuantizedPiece x[kXPieces];
  [[unroll]] for (uint r = 0; r < kRows; ++r) {
    const uint row = X_ROW(min(first_row + r, params.rows - 1));
    [[unroll]] for (uint i = 0; i < kPieces; ++i)
      x[r * kPieces + i] = quantize_piece(params.x + uint64_t(row) * X_INPUTS * 4, i * kTeamLanes,
                                       pieces, team_lane);
  }

  [[dont_unroll]] for (uint round = 0; round < kRounds; ++round) {
    RawPiece next[kRoundPieces];
    if (round + 1 < kRounds) load_round(next, matrices, team_first_result(round + 1, team_id()), team_lane);
    multiply_round(w, x, round, team_first_result(round, team_id()), team_lane);
    [[unroll]] for (uint i = 0; i < kRoundPieces; ++i) w[i] = next[i];
  }

  if (kNorm != 0) stage_squares(row_squares);
  barrier();  // squares and sums are in shared memory
  store_results(kNorm != 0 ? norm_scale(kSubgroups) : 1.0, residuals, first_row);
  results_done();
}
