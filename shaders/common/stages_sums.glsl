// What a token adds to the sums that stages need: the spread of a row's logits, and the mean distance of
// its tokens. All in integers, so that sums do not depend on the order of addition.
//
// Include after sampling_key.glsl and params/sampling.h.
#ifndef HEARTH_STAGES_SUMS_GLSL
#define HEARTH_STAGES_SUMS_GLSL

layout(buffer_reference, std430, buffer_reference_align = 4) nonprivate buffer SamplingSumsOfChunks {
  SamplingSums at[];
};

// The sums of a step's chunks are after its chunks.
uint64_t sums_of_row(uint64_t chunks, uint rows, uint row, uint row_chunks) {
  return chunks + uint64_t(rows) * row_chunks * 20 + uint64_t(row) * row_chunks * 28;
}

const float kSigmaUnits = 16384.0;
const float kSigmaReach = 256.0;  // distances beyond this count as this, so that the sums fit

uint spread_steps(float distance) {
  return uint(int(min(distance, kSigmaReach) * kSigmaUnits + 0.5));
}

// A distance in units of 2^-20, for weighted means.
uint weighted_place(float distance) {
  return uint(int(min(distance, kMaxDistance) * float(1u << 20) + 0.5));
}

uint64_t weight_moment(uint64_t weight, float distance) {
  return (weight * weighted_place(distance)) >> 20;
}

#endif
