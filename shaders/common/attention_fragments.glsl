// Chunks of the cache as halves, and reductions over the lanes that hold the same row of a fragment: for
// attention_lanes.comp and attention_direct.comp.
//
// Include after attention_kv.glsl, halves.glsl and fragment_lanes.glsl.
#ifndef HEARTH_ATTENTION_FRAGMENTS_GLSL
#define HEARTH_ATTENTION_FRAGMENTS_GLSL
#include "common/lane_exchange.glsl"

const uint kChunkVecs = kChunkElements / kVecHalves;  // of 16 bytes

// Eight elements of a chunk, number `vec`, as halves.
uvec4 chunk_halves(KvChunk chunk, uint vec) {
#ifdef KV_Q8_0
  return pack_halves(chunk_quad(chunk, 2 * vec) * chunk.scale,
                     chunk_quad(chunk, 2 * vec + 1) * chunk.scale);
#else
  return chunk.bits;
#endif
}

// A row's max is raised only when a score exceeds it by this much, so that sums are rarely rescaled. A
// weight is then at most 2^kSlack, well inside f16.
const float kSlack = 8.0;

// Over the four lanes that share a row.
float row_max(float value) {
  value = max(value, shuffle_xor(value, 1));
  return max(value, shuffle_xor(value, 2));
}
float row_sum(float value) {
  value += shuffle_xor(value, 1);
  return value + shuffle_xor(value, 2);
}

#endif
