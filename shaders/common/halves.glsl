// Vecs of eight halves in 16 bytes: how operands of matrix units are stored in memory.
#ifndef HEARTH_HALVES_GLSL
#define HEARTH_HALVES_GLSL

const uint kVecHalves = 8;

uvec4 pack_halves(vec4 low, vec4 high) {
  return uvec4(packHalf2x16(low.xy), packHalf2x16(low.zw), packHalf2x16(high.xy),
               packHalf2x16(high.zw));
}

// Values beyond the range of f16 are cut off rather than made infinite.
vec4 within_half(vec4 value) { return clamp(value, -65504.0, 65504.0); }

// The nearest that f16 has, even on a tie: packing may also round towards zero, which costs four
// times the error and pulls every value the same way. Halves below 2^-14 are left to the packing.
vec4 nearest_half(vec4 value) {
  const uvec4 bits = floatBitsToUint(within_half(value));
  return uintBitsToFloat((bits + 0xfffu + ((bits >> 13) & 1u)) & 0xffffe000u);
}

// The halves `at` of two of them, 0 to 7, in one word.
uint pair_word(uvec4 first, uvec4 second, uint at) {
  const uint a = first[at / 2], b = second[at / 2];
  return at % 2 == 0 ? (a & 0xffffu) | b << 16 : a >> 16 | (b & 0xffff0000u);
}

#endif
