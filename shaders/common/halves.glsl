// Vecs of eight halves in 16 bytes: how operands of matrix units are stored in memory.
#ifndef HEARTH_HALVES_GLSL
#define HEARTH_HALVES_GLSL

const uint kVecHalves = 8;

uvec4 pack_halves(vec4 low, vec4 high) {
  return uvec4(packHalf2x16(low.xy), packHalf2x16(low.zw), packHalf2x16(high.xy),
               packHalf2x16(high.zw));
}

// Clamps values beyond the range of f16, so that they do not become infinite.
vec4 within_half(vec4 value) { return clamp(value, -65504.0, 65504.0); }

// Rounds to the nearest half, ties to even: packing may also round towards zero, which is biased and has
// four times the mean squared error. Values below 2^-14 are rounded by the packing.
vec4 nearest_half(vec4 value) {
  const uvec4 bits = floatBitsToUint(within_half(value));
  return uintBitsToFloat((bits + 0xfffu + ((bits >> 13) & 1u)) & 0xffffe000u);
}

// Element `at`, 0 to 7, of two vecs of halves, in one word.
uint pair_word(uvec4 first, uvec4 second, uint at) {
  const uint a = first[at / 2], b = second[at / 2];
  return at % 2 == 0 ? (a & 0xffffu) | b << 16 : a >> 16 | (b & 0xffff0000u);
}

#endif
