// The two halves of an RMS norm that matmul_team can do (params/matmul.h). A lane that stores results
// stores those of one row, lane % 8 of its column. Expects what matmul_team.glsl declares before
// including this.
#ifndef HEARTH_MATMUL_NORM_GLSL
#define HEARTH_MATMUL_NORM_GLSL

float norm_guess(uint row) { return FreshF32(params.norm_state).at[row]; }

uint square_at(uint row, uint group, uint groups) { return kMostNormRows + row * groups + group; }

// What results n and n + 8 of a row are multiplied by if this product starts the norm after it.
vec2 prescale_factors(uint row, uint n) {
  F32 weight = F32(params.norm_weight);
  const uint last = params.outputs - 1;
  return vec2(weight.at[min(n, last)], weight.at[min(n + 8, last)]) * norm_guess(row);
}

void store_prescaled(uint row, uint n, float value) {
  if (row < params.rows && n < params.outputs) store_half(params.prescaled, row * params.outputs + n, value);
}

shared float subgroup_squares[kSubgroups * kColumnRows];

// Stores the sum of the squares of all results that the workgroup stored, row by row.
void store_squares(float squares) {
  squares += shuffle_xor(squares, 8);
  squares += shuffle_xor(squares, 16);
  if (lane_id() < kColumnRows) subgroup_squares[subgroup_id() * kColumnRows + lane_id()] = squares;
  barrier();
  const uint row = gl_LocalInvocationIndex;
  if (row >= min(kRows, params.rows)) return;
  float sum = 0.0;
  for (uint s = 0; s < kSubgroups; ++s)
    if (column_of(s) == row / kColumnRows) sum += subgroup_squares[s * kColumnRows + row % kColumnRows];
  F32(params.norm_state).at[square_at(row, gl_WorkGroupID.y, gl_NumWorkGroups.y)] = sum;
}

shared float norm_factors[kRows];  // of the sums, to finish a norm; valid after a barrier

void find_norm_factors() {
  [[unroll]] for (uint first = 0; first < kRows; first += kSubgroups) {
    const uint row = min(first + subgroup_id(), kRows - 1);
    float squares = 0.0;
    [[unroll]] for (uint group = 0; group < kNormWorkgroups; group += kSubgroupSize) {
      const uint own = group + lane_id();
      if (own < kNormWorkgroups) squares += FreshF32(params.norm_state).at[square_at(row, own, kNormWorkgroups)];
    }
    [[unroll]] for (uint mask = 1; mask < kSubgroupSize; mask *= 2) squares += shuffle_xor(squares, mask);
    if (lane_id() == 0)  // subgroups past the last row all write the same value
      norm_factors[row] = inversesqrt(squares / float(kInputs) + params.epsilon) / norm_guess(row);
  }
}

#endif
