// Matrix times a few vectors, for GPUs with packed 8-bit dot products. The formula is in
// params/matmul.h.
//
// A group computes kRounds * kTeams * kOutputs neighbouring outputs for kRows rows of x: in a round
// each of its teams takes kOutputs. The lanes of a team share k out, kPieces pieces of 32 weights each.
// The group makes integers of 15 bits and a sign of x once (common/split.glsl), for all of its teams,
// and they stay in registers; each piece of weights is then summed exactly. While one round's weights are
// multiplied the next one's are on their way, and the first ones before this kernel waits for x.
//   groups = [ceil(results / (kRounds * kTeams * kResults)), ceil(rows / kRows), 1]
// REQUIRES: a quantized format, full subgroups of 8 or more, kOutputs * kRows a power of two and at most
// the size of a subgroup, teams of whole subgroups, kTeams 1, 2, 4 or 8, inputs <= 32 * kPieces * lanes of a team.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_integer_dot_product : require
#include "common/kernel.glsl"
#include "quant/glsl.h"
#include "weight_format.h"
#include "common/activation.glsl"
#include "params/matmul.h"
#include "common/chain.glsl"
#include "common/matmul_output.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 2) const uint kRows = 1;     // of x
layout(constant_id = 3) const uint kOutputs = 4;  // of a team in a round
layout(constant_id = 4) const uint kPieces = 1;   // of a lane
layout(constant_id = 5) const uint kSubgroups = 4;
layout(constant_id = 6) const uint kRounds = 1;
layout(constant_id = 7) const uint kNorm = 0;  // 1: x, one row, is normed first
layout(constant_id = 8) const uint kGate = kGateNone;  // REQUIRES otherwise: kOutputs even
layout(constant_id = 9) const uint kTeams = 1;

const uint kLanes = gl_WorkGroupSize.x;
const uint kWidth = kLanes / kSubgroups;
const uint kTeamLanes = kLanes / kTeams, kTeamSubgroups = kSubgroups / kTeams;

// A quad of x as it is split: with kNorm times the norm's weights, and what the norm multiplies by is
// left to the sums.
float row_squares = 0.0;  // of the quads that this lane has loaded
vec4 x_quad(uint64_t x, uint quad) {
  vec4 values = F32x4(x).at[quad];
  if (kNorm != 0) {
    row_squares += dot(values, values);
    values *= F32x4(params.norm_weight).at[quad];
  }
  return values;
}
#include "common/split.glsl"

// Of a round's outputs the first half are gates and the second their ups, where there are gates.
const uint kResults = kGate == kGateNone ? kOutputs : kOutputs / 2;
const uint kPartials = kRounds * kOutputs * kRows * kSubgroups;
shared float partials[kPartials];  // [round, output, row, subgroup]
shared float squares_of[kSubgroups];

float dot_piece(Piece w, SplitPiece x) {
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

uint result_count() { return kGate == kGateNone ? params.outputs : params.outputs / 2; }

const uint kRoundPieces = kOutputs * kPieces;

// Piece `place` of output o of a round. Outputs and pieces past the last one repeat it, so that loads
// stay inside: the sums of the former are dropped, and to the latter x is 0.
uint weight_piece(uint first, uint o, uint place) {
  const uint pieces = params.inputs / kPieceWeights, results = result_count();
  const uint n = min(first + o % kResults, results - 1) + o / kResults * results;
  return n * pieces + min(place, pieces - 1);
}

void load_round(out RawPiece w[kRoundPieces], Planes planes, uint first, uint lane) {
  [[unroll]] for (uint o = 0; o < kOutputs; ++o)
    [[unroll]] for (uint i = 0; i < kPieces; ++i)
      w[o * kPieces + i] = load_piece(planes, weight_piece(first, o, lane + i * kTeamLanes));
}

const uint kXPieces = kRows * kPieces;
const uint kSums = kOutputs * kRows;

// Adds up each of the values over the subgroup: lane l is left with all of value l % kSums. Lanes give
// away half of their values at every step, so that it takes fewer than a sum each.
float add_lanes(float values[kSums]) {
  uint left = kSums;
  [[unroll]] for (uint distance = 1; distance < kSums; distance *= 2) {
    left /= 2;
    const bool odd = (gl_SubgroupInvocationID & distance) != 0;
    [[unroll]] for (uint i = 0; i < kSums / 2; ++i) {
      if (i < left) {  // measured on an H200: leaving the loop otherwise costs a chain 14 %
        const float kept = odd ? values[2 * i + 1] : values[2 * i];
        const float given = odd ? values[2 * i] : values[2 * i + 1];
        values[i] = kept + subgroupShuffleXor(given, distance);
      }
    }
  }
  float sum = values[0];
  [[unroll]] for (uint distance = kSums; distance < kWidth; distance *= 2)
    sum += subgroupShuffleXor(sum, distance);
  return sum;
}

void multiply_round(RawPiece w[kRoundPieces], SplitPiece x[kXPieces], uint round, uint first,
                    uint lane) {
  float sums[kSums];  // [output, row]
  [[unroll]] for (uint o = 0; o < kOutputs; ++o) {
    [[unroll]] for (uint r = 0; r < kRows; ++r) sums[o * kRows + r] = 0.0;
    [[unroll]] for (uint i = 0; i < kPieces; ++i) {
      const uint place = lane + i * kTeamLanes;
      // Where blocks have several pieces, one's place in its block is the same in every row.
      const uint index = kBlockWeights > kPieceWeights ? place : weight_piece(first, o, place);
      const Piece piece = decode_piece(w[o * kPieces + i], index);
      [[unroll]] for (uint r = 0; r < kRows; ++r)
        sums[o * kRows + r] += dot_piece(piece, x[r * kPieces + i]);
    }
  }
  const float sum = add_lanes(sums);
  if (gl_SubgroupInvocationID < kSums)
    partials[(round * kSums + gl_SubgroupInvocationID) * kSubgroups + gl_SubgroupID] = sum;
}

float team_sum(uint round, uint team, uint o, uint r) {
  float sum = 0.0;
  const uint first = (round * kSums + o * kRows + r) * kSubgroups + team * kTeamSubgroups;
  [[unroll]] for (uint s = 0; s < kTeamSubgroups; ++s) sum += partials[first + s];
  return sum;
}

// The results that a lane finishes.
const uint kOwn = (kRounds * kTeams * kResults * kRows + kLanes - 1) / kLanes;

void main() {
  const uint lane = gl_SubgroupID * kWidth + gl_SubgroupInvocationID, team_lane = lane % kTeamLanes;
  const uint round_results = kTeams * kResults;
  const uint group_first = gl_WorkGroupID.x * kRounds * round_results;
  const uint first = group_first + lane / kTeamLanes * kResults;
  const uint first_row = gl_WorkGroupID.y * kRows;
  const uint pieces = params.inputs / kPieceWeights;  // in a row
  const Planes planes = planes_at(params.weight, params.outputs * (params.inputs / kBlockWeights));

  RawPiece w[kRoundPieces];
  load_round(w, planes, first, team_lane);
  chain_wait();
  // What the results end with, which is then there when they are.
  float residuals[kOwn];
  [[unroll]] for (uint own = 0; own < kOwn; ++own) {
    const uint i = lane + own * kLanes;
    residuals[own] = load_residual(first_row + i % kRows, group_first + i / kRows);
  }
  SplitPiece x[kXPieces];
  [[unroll]] for (uint r = 0; r < kRows; ++r) {
    const uint row = min(first_row + r, params.rows - 1);
    [[unroll]] for (uint i = 0; i < kPieces; ++i)
      x[r * kPieces + i] = split_piece(params.x + uint64_t(row) * params.inputs * 4, i * kTeamLanes,
                                       pieces, team_lane);
  }

  [[dont_unroll]] for (uint round = 0; round < kRounds; ++round) {
    RawPiece next[kRoundPieces];
    if (round + 1 < kRounds)
      load_round(next, planes, first + (round + 1) * round_results, team_lane);
    multiply_round(w, x, round, first + round * round_results, team_lane);
    [[unroll]] for (uint i = 0; i < kRoundPieces; ++i) w[i] = next[i];
  }

  if (kNorm != 0) {
    const float squares = subgroupAdd(row_squares);
    if (gl_SubgroupInvocationID == 0) squares_of[gl_SubgroupID] = squares;
  }
  barrier();  // they, and partials
  float scale = 1.0;
  if (kNorm != 0) {
    float squares = 0.0;
    [[unroll]] for (uint s = 0; s < kSubgroups; ++s) squares += squares_of[s];
    scale = inversesqrt(squares / float(params.inputs) + params.epsilon);
  }
  const uint results = result_count();
  [[unroll]] for (uint own = 0; own < kOwn; ++own) {
    const uint i = lane + own * kLanes;
    const uint r = i % kRows, row = first_row + r, place = i / kRows, n = group_first + place;
    const uint round = place / round_results, team = place / kResults % kTeams, o = place % kResults;
    if (round < kRounds && row < params.rows && n < results) {
      const float total = team_sum(round, team, o, r) * scale;
      if (kGate != kGateNone) {
        const float up = team_sum(round, team, o + kResults, r) * scale;
        F32(params.y).at[row * results + n] = activate(total, kGate == kGateGelu) * up;
      } else {
        store_output(row, n, total, residuals[own]);
      }
    }
  }
  chain_done();
}
