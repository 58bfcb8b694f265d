// A chunk of weights for matrix units, what one lane loads at a time: eight weights of F16 or BF16, so
// that neighbouring lanes read neighbouring bytes, or a piece of 32 quantized weights. A chunk stays as
// it is in memory until it is decoded, so that nothing waits for a load in flight.
// Expects quant/glsl.h, weight_format.h and common/halves.glsl.
#ifndef HEARTH_WEIGHT_CHUNK_F16_GLSL
#define HEARTH_WEIGHT_CHUNK_F16_GLSL

#ifdef FORMAT_IS_FLOAT
const uint kChunkWeights = 8;
#define RawChunk uvec4
RawChunk load_raw_chunk(Planes planes, uint index) { return load_16b(planes.values, index); }
#else
const uint kChunkWeights = 32;
#define RawChunk RawPiece
RawChunk load_raw_chunk(Planes planes, uint index) { return load_piece(planes, index); }
#endif
const uint kChunkVecs = kChunkWeights / kVecHalves;

// MXFP4's bits are moved into halves, where devices compute with subnormal halves: those of which a kernel
// knows the fragments.
#if defined(WEIGHT_MXFP4) && defined(SUBNORMAL_HALVES)
#define DECODE_TINY_FLOATS
#endif

// Quantized weights are decoded in f16, where conversions are cheap, and multiplied by this, so that
// scales are not subnormal halves.
#ifdef FORMAT_IS_FLOAT
const float kDecodeScale = 1.0;
#elif defined(DECODE_TINY_FLOATS)
// Smaller, because of kTinyScale below: with it, weights up to 48 are right.
const float kDecodeScale = 0.25;
#else
const float kDecodeScale = 64.0;
#endif

#if defined(DECODE_TINY_FLOATS)
// A four-bit float has one bit of sign, two of exponent and one of mantissa, and so has a half whose other
// bits are 0: the same number, subnormals included, times 2^-14.
const float kTinyScale = 16384.0;

// The four bits below bit 4 * (4 - `place`) of both halves of a word. Shifts to the left, because NVIDIA's
// multipliers can do those.
uint tiny_pair(uint bits, uint place) {
  const uint rest = place == 0 ? bits >> 3 : bits << (4 * place - 3);
  return (bits << (4 * place) & 0x80008000u) | (rest & 0x0e000e00u);
}

// Weights 0 to 3 or, with `place` 0 instead of 1, 16 to 19 of the interleaved word `quants`.
uvec2 decode_tiny(uint quants, uint place, f16vec2 scale) {
  return uvec2(packFloat2x16(unpackFloat2x16(tiny_pair(quants, 2 + place)) * scale),
               packFloat2x16(unpackFloat2x16(tiny_pair(quants, place)) * scale));
}
#elif !defined(FORMAT_IS_FLOAT)
// Bytes 0 and 2 of `bytes`, signed bytes that come xor 128, minus kCentre: the half 1024 + n has the
// integer n in its low bits. In an interleaved word (quant/piece.h) they are neighbours.
f16vec2 byte_pair(uint bytes) {
  return unpackFloat2x16((bytes & 0x00ff00ffu) | 0x64006400u) - f16vec2(1152.0 + float(kCentre));
}

#if defined(WEIGHT_Q4_K)
// The low nibbles of bytes 0 and 2 of `bytes`, minus kCentre.
f16vec2 nibble_pair(uint bytes) {
  return unpackFloat2x16((bytes & 0x000f000fu) | 0x64006400u) - f16vec2(1024.0 + float(kCentre));
}

uvec2 decode_nibbles(uint bytes, f16vec2 scale, f16vec2 offset) {
  return uvec2(packFloat2x16(fma(nibble_pair(bytes), scale, offset)),
               packFloat2x16(fma(nibble_pair(bytes >> 8), scale, offset)));
}
#endif

uvec2 decode_bytes(uint q, f16vec2 scale, f16vec2 offset) {
  const uint bytes = q ^ 0x80808080u;
  const f16vec2 low = byte_pair(bytes), high = byte_pair(bytes >> 8);
  if (!kHasOffset) return uvec2(packFloat2x16(low * scale), packFloat2x16(high * scale));
  return uvec2(packFloat2x16(fma(low, scale, offset)), packFloat2x16(fma(high, scale, offset)));
}
#endif

// The chunk as halves, kDecodeScale times its weights. `index` is the one it was loaded with.
void decode_chunk(RawChunk chunk, uint index, out uvec4 halves[kChunkVecs]) {
#if defined(WEIGHT_F16)
  halves[0] = chunk;
#elif defined(WEIGHT_BF16)
  const uvec4 even = chunk << 16, odd = chunk & 0xffff0000u;
  halves[0] = pack_halves(
      within_half(uintBitsToFloat(uvec4(even.x, odd.x, even.y, odd.y))),
      within_half(uintBitsToFloat(uvec4(even.z, odd.z, even.w, odd.w))));
#elif defined(DECODE_TINY_FLOATS)
  const f16vec2 scale =
      f16vec2(float16_t(2.0 * kTinyScale * kDecodeScale * exponent_scale(piece_exponent(chunk, index))));
  [[unroll]] for (uint v = 0; v < kChunkVecs; ++v) {
    const uint place = v < 2 ? 1 : 0, word = v % 2 * 2;
    halves[v] = uvec4(decode_tiny(chunk.quants[word], place, scale),
                      decode_tiny(chunk.quants[word + 1], place, scale));
  }
#elif defined(WEIGHT_Q4_K)
  const vec2 pair = scale_and_offset(chunk.header, index & 7u) * kDecodeScale;
  const f16vec2 scale = f16vec2(float16_t(pair.x));
  const f16vec2 offset = f16vec2(float16_t(pair.y + float(kCentre) * pair.x));
  [[unroll]] for (uint v = 0; v < kChunkVecs; ++v) {
    const uint shift = v < 2 ? 0 : 4, word = v % 2 * 2;
    halves[v] = uvec4(decode_nibbles(chunk.quants[word] >> shift, scale, offset),
                      decode_nibbles(chunk.quants[word + 1] >> shift, scale, offset));
  }
#else
  const Piece piece = decode_piece(chunk, index);
  const vec2 scale_pair = vec2(piece.scale0, piece.scale1) * kDecodeScale;
  const vec2 offset_pair = vec2(piece.offset0, piece.offset1) * kDecodeScale;
  // Around the centre both terms are small, and so are their rounding errors in f16.
  const f16vec2 scales = f16vec2(scale_pair);
  const f16vec2 offsets = f16vec2(offset_pair + float(kCentre) * scale_pair);
  [[unroll]] for (uint v = 0; v < kChunkVecs; ++v) {
    const f16vec2 scale = v < 2 ? scales.xx : scales.yy, offset = v < 2 ? offsets.xx : offsets.yy;
    halves[v] = uvec4(decode_bytes(piece.q[2 * v], scale, offset),
                      decode_bytes(piece.q[2 * v + 1], scale, offset));
  }
#endif
}

#endif
