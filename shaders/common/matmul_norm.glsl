// The RMS norm between two matrix-vector products (params/matmul.h), both sides of it. Expects
// common/reduce.glsl and, before it, the group's size: without that gl_WorkGroupSize is 1. Every
// invocation of the group must call what sums over it.
#ifndef HEARTH_MATMUL_NORM_GLSL
#define HEARTH_MATMUL_NORM_GLSL

// A lane's part of the sum over all groups of the kernel before. Four to a load: the list is padded.
float own_squares() {
  float sum = 0.0;
  F32x4 squares = F32x4(params.squares);
  for (uint i = gl_LocalInvocationIndex; i < (params.square_count + 3) / 4; i += gl_WorkGroupSize.x) {
    const vec4 four = squares.at[i];
    [[unroll]] for (uint j = 0; j < 4; ++j) sum += i * 4 + j < params.square_count ? four[j] : 0.0;
  }
  return sum;
}

// What the norm multiplies by, from the lanes' parts of the sum.
float norm_scale(float squares) {
  return inversesqrt(group_add(squares) / float(params.inputs) + params.epsilon);
}

// What emit_scaled() wants to be given. Any n does.
float load_norm_weight(uint n) { return F32(params.norm_weight).at[min(n, params.outputs - 1)]; }

// Leaves output n for the next product; its square.
float emit_scaled(uint n, float value, float weight) {
  F32(params.scaled).at[n] = value * weight;
  return value * value;
}

void emit_squares(float own) {
  const float all = group_add(own);
  if (gl_LocalInvocationIndex == 0) F32(params.squares).at[gl_WorkGroupID.x] = all;
}

#endif
