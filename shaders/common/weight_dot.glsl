// A piece of weights as one invocation multiplies it, for CPU-type devices. Expects quant/glsl.h and
// weight_format.h.
#ifndef HEARTH_WEIGHT_DOT_GLSL
#define HEARTH_WEIGHT_DOT_GLSL

// A piece of weights, and its product with 32 floats of x.
#ifdef FORMAT_IS_FLOAT
#define Weights FloatPiece
Weights load_weights(Planes planes, uint piece) { return unpack_float_piece(planes, piece); }
float dot_weights(Weights w, F32x4 x, uint first) {
  vec4 products = vec4(0.0);
  [[unroll]] for (uint i = 0; i < 8; ++i) products += w.w[i] * x.at[first + i];
  return (products.x + products.y) + (products.z + products.w);
}
#else
// Scales are applied to sums, not to weights: fewer multiplications.
#define Weights Piece
Weights load_weights(Planes planes, uint piece) { return unpack_piece(planes, piece); }
float dot_weights(Weights w, F32x4 x, uint first) {
  vec4 products[2] = vec4[2](vec4(0.0), vec4(0.0));
  vec4 sums[2] = vec4[2](vec4(0.0), vec4(0.0));
  [[unroll]] for (uint i = 0; i < 8; ++i) {
    const vec4 values = x.at[first + i];
    products[i / 4] += bytes_to_floats(w.q[i], 1.0, 0.0) * values;
    if (kHasOffset) sums[i / 4] += values;
  }
  vec4 total = w.scale0 * products[0] + w.scale1 * products[1];
  if (kHasOffset) total += w.offset0 * sums[0] + w.offset1 * sums[1];
  return (total.x + total.y) + (total.z + total.w);
}
#endif

#endif
