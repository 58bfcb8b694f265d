// The paged cache in chunks of 16 bytes, for the axis kv=f16,q8_0. A chunk is kChunkElements
// neighbouring elements of a KV row; an element is chunk_scale() times a component of chunk_quad().
//
// Include after params/paged_kv.h and common/kernel.glsl; needs kHeadSize.
#ifndef HEARTH_ATTENTION_KV_GLSL
#define HEARTH_ATTENTION_KV_GLSL

layout(buffer_reference, std430, buffer_reference_align = 8) nonprivate readonly buffer U32x2 { uvec2 at[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) nonprivate readonly buffer KvScales {
  float16_t at[];
};

#ifdef KV_Q8_0
const uint kChunkElements = 16;
struct KvChunk {
  uvec4 bits;
  float scale;
};
#else
const uint kChunkElements = 8;
struct KvChunk {
  uvec4 bits;
};
#endif
const uint kChunkQuads = kChunkElements / 4;
const uint kRowChunks = kHeadSize / kChunkElements;

#ifdef KV_Q8_0
float row_scale(uint64_t scales, uint row, uint index) {
  const uint row_scales = DIVIDE_UP(kHeadSize, kScaleWeights);
  return float(KvScales(scales + uint64_t(row) * (row_scales * 2)).at[index]);
}
#endif

// Row indices fit in 32 bits, byte offsets do not.
KvChunk load_chunk(uint64_t base, uint64_t scales, uint row, uint chunk) {
  KvChunk result;
  result.bits = U32x4(base + uint64_t(row) * (kRowChunks * 16)).at[chunk];
#ifdef KV_Q8_0
  result.scale = row_scale(scales, row, chunk / (kScaleWeights / kChunkElements));
#endif
  return result;
}

// Four elements of a KV row, scaled.
vec4 load_kv_quad(uint64_t base, uint64_t scales, uint row, uint quad) {
  const uint64_t at = base + uint64_t(row) * (kRowChunks * 16);
#ifdef KV_Q8_0
  const int word = int(U32(at).at[quad]);
  return vec4(bitfieldExtract(word, 0, 8), bitfieldExtract(word, 8, 8),
              bitfieldExtract(word, 16, 8), bitfieldExtract(word, 24, 8)) *
         row_scale(scales, row, quad / (kScaleWeights / 4));
#else
  const uvec2 bits = U32x2(at).at[quad];
  return vec4(unpackHalf2x16(bits.x), unpackHalf2x16(bits.y));
#endif
}

#ifdef KV_Q8_0
float chunk_scale(KvChunk chunk) { return chunk.scale; }
vec4 chunk_quad(KvChunk chunk, uint i) {
  const int word = int(chunk.bits[i]);
  return vec4(bitfieldExtract(word, 0, 8), bitfieldExtract(word, 8, 8),
              bitfieldExtract(word, 16, 8), bitfieldExtract(word, 24, 8));
}
#else
float chunk_scale(KvChunk chunk) { return 1.0; }
vec4 chunk_quad(KvChunk chunk, uint i) {
  return vec4(unpackHalf2x16(chunk.bits[2 * i]), unpackHalf2x16(chunk.bits[2 * i + 1]));
}
#endif

#endif
