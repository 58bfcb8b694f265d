// Scaling and capping of scores, for all attention kernels. Scores are in units of log2, so that a
// softmax weight is a bare exp2. Needs kScale.
#ifndef HEARTH_ATTENTION_SCORE_GLSL
#define HEARTH_ATTENTION_SCORE_GLSL

const float kLog2E = 1.4426950408889634;

// The max of no scores at all. Finite, so that the difference of two of them is 0; far below any
// score, so that exp2 of a difference to a real one is 0.
const float kNoMax = -1e30;
const float kMasked = -1.0 / 0.0;

// The factor that queries are multiplied by before their products with keys. With a soft cap,
// cap_scores() turns the products into scores; without one they are scores already.
float query_scale() {
  return params.soft_cap == 0.0 ? kScale * kLog2E : kScale / params.soft_cap;
}

// tanh from one exp2, which may overflow or underflow without harm. REQUIRES: a soft cap.
vec4 cap_scores(vec4 product) {
  const vec4 tanh_product = 1.0 - 2.0 / (exp2(product * (2.0 * kLog2E)) + 1.0);
  return tanh_product * (params.soft_cap * kLog2E);
}
float cap_score(float product) { return cap_scores(vec4(product)).x; }

#endif
