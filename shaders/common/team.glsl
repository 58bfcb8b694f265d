// A workgroup whose lanes split k, for matrix-vector products (matvec_team, matvec_integer).
//
// A workgroup computes kRounds * kTeams * kOutputs neighbouring outputs for kRows rows of x: in a round
// each of its teams computes kOutputs. Every lane has a part of each of its team's sums; this file adds
// the parts up, over the lanes of a subgroup after every round and over the subgroups of a team at the
// end, and stores the results.
// Expects the constants of matvec_team or matvec_integer, common/activation.glsl, common/chain.glsl and
// common/matmul_output.glsl.
// REQUIRES: full subgroups, teams of whole subgroups, kOutputs * kRows a power of two and at most the
// subgroup size, and at least as many outputs as a team computes in a round.
#ifndef HEARTH_TEAM_GLSL
#define HEARTH_TEAM_GLSL
#extension GL_KHR_shader_subgroup_shuffle : require

const uint kInvocations = gl_WorkGroupSize.x;
const uint kSubgroupSize = kInvocations / kSubgroups;
const uint kTeamLanes = kInvocations / kTeams, kTeamSubgroups = kSubgroups / kTeams;

// With gates, the first half of a round's outputs are gates and the second half their ups.
const uint kResults = kGate == kGateNone ? kOutputs : kOutputs / 2;
const uint kRoundResults = kTeams * kResults, kWorkgroupResults = kRounds * kRoundResults;
const uint kSums = kOutputs * kRows;  // per round: [output, row]

const uint kPartials = kRounds * kSums * kSubgroups;
shared float partials[kPartials];  // [round, output, row, subgroup]
shared float squares_of[kSubgroups];

uint workgroup_lane() { return gl_SubgroupID * kSubgroupSize + gl_SubgroupInvocationID; }
uint team_id() { return gl_SubgroupID / kTeamSubgroups; }

uint result_count() { return kGate == kGateNone ? params.outputs : params.outputs / 2; }

// The first result of a team in a round. Near the end it is moved back so that all of the team's results
// exist.
uint team_first_result(uint round, uint team) {
  const uint first = gl_WorkGroupID.x * kWorkgroupResults + round * kRoundResults + team * kResults;
  return min(first, result_count() - kResults);
}

// Adds up each value over the subgroup: lane l returns the total of value l % kSums. Lanes give away
// half of their values at every step, which takes fewer shuffles than one reduction per value.
float add_lanes(float values[kSums]) {
  uint left = kSums;
  [[unroll]] for (uint distance = 1; distance < kSums; distance *= 2) {
    left /= 2;
    const bool odd = (gl_SubgroupInvocationID & distance) != 0;
    [[unroll]] for (uint i = 0; i < kSums / 2; ++i) {
      if (i < left) {  // measured on an H200: a `break` instead costs a chain 14 %
        const float kept = odd ? values[2 * i + 1] : values[2 * i];
        const float given = odd ? values[2 * i] : values[2 * i + 1];
        values[i] = kept + subgroupShuffleXor(given, distance);
      }
    }
  }
  float sum = values[0];
  [[unroll]] for (uint distance = kSums; distance < kSubgroupSize; distance *= 2)
    sum += subgroupShuffleXor(sum, distance);
  return sum;
}

void stage_sums(float sums[kSums], uint round) {
  const float sum = add_lanes(sums);
  if (gl_SubgroupInvocationID < kSums)
    partials[(round * kSums + gl_SubgroupInvocationID) * kSubgroups + gl_SubgroupID] = sum;
}

// `own` is over the lane's part of x, before the norm.
void stage_squares(float own) {
  const float squares = subgroupAdd(own);
  if (gl_SubgroupInvocationID == 0) squares_of[gl_SubgroupID] = squares;
}

// The norm's scale. The first `subgroups` subgroups together have all of x.
float norm_scale(uint subgroups) {
  float squares = 0.0;
  [[unroll]] for (uint s = 0; s < subgroups; ++s) squares += squares_of[s];
  return inversesqrt(squares / float(params.inputs) + params.epsilon);
}

float team_sum(uint round, uint team, uint o, uint r) {
  float sum = 0.0;
  const uint first = (round * kSums + o * kRows + r) * kSubgroups + team * kTeamSubgroups;
  [[unroll]] for (uint s = 0; s < kTeamSubgroups; ++s) sum += partials[first + s];
  return sum;
}

// The results that a lane finishes: [result, row], kInvocations apart.
const uint kLaneResults = DIVIDE_UP(kWorkgroupResults * kRows, kInvocations);

// The residuals of these results, to be loaded well before they are needed.
void load_residuals(out float residuals[kLaneResults], uint first_row) {
  [[unroll]] for (uint k = 0; k < kLaneResults; ++k) {
    const uint i = workgroup_lane() + k * kInvocations;
    residuals[k] = load_residual(first_row + i % kRows, gl_WorkGroupID.x * kWorkgroupResults + i / kRows);
  }
}

// REQUIRES: a barrier after the last stage_sums().
void store_results(float scale, float residuals[kLaneResults], uint first_row) {
  const uint results = result_count();
  [[unroll]] for (uint k = 0; k < kLaneResults; ++k) {
    const uint i = workgroup_lane() + k * kInvocations;
    const uint r = i % kRows, row = first_row + r;
    const uint place = i / kRows, n = gl_WorkGroupID.x * kWorkgroupResults + place;
    if (place < kWorkgroupResults && row < params.rows && n < results) {
      const uint round = place / kRoundResults, team = place / kResults % kTeams;
      const uint o = n - team_first_result(round, team);
      const float total = team_sum(round, team, o, r) * scale;
      if (kGate != kGateNone) {
        const float up = team_sum(round, team, o + kResults, r) * scale;
#ifdef EXPERTS
        F32(params.y).at[row * results + n] =
            GATED(total + expert_bias(n), up + expert_bias(n + results));
#else
        F32(params.y).at[row * results + n] = activate(total, kGate == kGateGelu) * up;
#endif
      } else {
        store_output(row, n, total, residuals[k]);
      }
    }
  }
}

// Ends the kernel, after store_results().
void results_done() {
  if (kWorkgroupResults * kRows <= kSubgroupSize) {
    chain_done_alone();
  } else {
    chain_done();
  }
}

#endif
