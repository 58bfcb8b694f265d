// A chunk of weights for float arithmetic, what one lane loads at a time: 16 bytes of a float format, so
// that neighbouring lanes read neighbouring bytes, or a piece of 32 quantized weights.
// chunk_quad(chunk, i) is its weights 4*i to 4*i+3. Expects quant/glsl.h and weight_format.h.
#ifndef HEARTH_WEIGHT_CHUNK_F32_GLSL
#define HEARTH_WEIGHT_CHUNK_F32_GLSL

#if defined(WEIGHT_F32)

const uint kChunkWeights = 4;
#define Chunk uvec4
Chunk load_chunk(Planes planes, uint index) { return load_16b(planes.values, index); }
vec4 chunk_quad(Chunk chunk, uint i) { return uintBitsToFloat(chunk); }

#elif defined(WEIGHT_F16) || defined(WEIGHT_BF16)

const uint kChunkWeights = 8;
#define Chunk uvec4
Chunk load_chunk(Planes planes, uint index) { return load_16b(planes.values, index); }
vec4 chunk_quad(Chunk chunk, uint i) {
  const uvec2 bits = i == 0 ? chunk.xy : chunk.zw;
#if defined(WEIGHT_F16)
  return vec4(unpackHalf2x16(bits.x), unpackHalf2x16(bits.y));
#else
  return uintBitsToFloat(uvec4(bits.x << 16, bits.x & 0xffff0000u, bits.y << 16, bits.y & 0xffff0000u));
#endif
}

#else

const uint kChunkWeights = 32;
#define Chunk FloatPiece
Chunk load_chunk(Planes planes, uint index) { return unpack_float_piece(planes, index); }
vec4 chunk_quad(Chunk chunk, uint i) { return chunk.w[i]; }

#endif

// The product with the quads of x from `first` on.
float dot_chunk(Chunk chunk, F32x4 x, uint first) {
  float sum = 0.0;
  [[unroll]] for (uint i = 0; i < kChunkWeights / 4; ++i) sum += dot(chunk_quad(chunk, i), x.at[first + i]);
  return sum;
}

#endif
