// Cosine and sine of an angle given as a fraction of a full turn, in units of 2^-32.
//
// Vulkan allows a driver's own functions an error of 2^-11 even for small arguments; the error of these
// is at most 2e-7 on every device. The angle is exact at any position, because whole turns wrap away in
// integer arithmetic.
#ifndef HEARTH_ROPE_ANGLE_GLSL
#define HEARTH_ROPE_ANGLE_GLSL

// The fraction of a turn at `position`. low and high are the turns per position, in units of 2^-64.
uint turn_at(uint position, uint low, uint high) {
  uint carry, rest;
  umulExtended(position, low, carry, rest);
  return position * high + carry;
}

void cos_sin(uvec4 turn, out vec4 cosine, out vec4 sine) {
  // The nearest quarter turn, and the rest: at most an eighth either way.
  const uvec4 quarter = (turn + 0x20000000u) >> 30;
  const vec4 a = vec4(ivec4(turn - (quarter << 30))) * 1.4629180792671596e-9;  // 2 pi / 2^32
  const vec4 a2 = a * a;
  // Taylor series; the first omitted terms are below 3e-8 at an eighth of a turn.
  const vec4 s = a + a * a2 * (-1.0 / 6.0 +
                               a2 * (1.0 / 120.0 + a2 * (-1.0 / 5040.0 + a2 * (1.0 / 362880.0))));
  const vec4 c =
      1.0 + a2 * (-0.5 + a2 * (1.0 / 24.0 + a2 * (-1.0 / 720.0 + a2 * (1.0 / 40320.0))));
  const bvec4 odd = equal(quarter & 1u, uvec4(1u));
  const vec4 c_sign = mix(vec4(1.0), vec4(-1.0), equal((quarter + 1u) & 2u, uvec4(2u)));
  const vec4 s_sign = mix(vec4(1.0), vec4(-1.0), equal(quarter & 2u, uvec4(2u)));
  cosine = mix(c, s, odd) * c_sign;
  sine = mix(s, c, odd) * s_sign;
}

#endif
