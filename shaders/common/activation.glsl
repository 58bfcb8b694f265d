// The activations of gated MLPs:
//   SiLU, x * sigmoid(x)
//   GELU by tanh, x / 2 * (1 + tanh(u)) = x * sigmoid(2 u), u = sqrt(2 / pi) * (x + 0.044715 x^3)
#ifndef HEARTH_ACTIVATION_GLSL
#define HEARTH_ACTIVATION_GLSL

// The exponent is bounded so that the division stays in the range with guaranteed precision.
vec4 activate(vec4 x, bool gelu) {
  const vec4 u = gelu ? x * (1.5957691216057308 + 0.07135481627260025 * x * x) : x;
  return x / (1.0 + exp(min(-u, 80.0)));
}

float activate(float x, bool gelu) { return activate(vec4(x), gelu).x; }

#endif
