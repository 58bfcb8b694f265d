// Combines what sample_scan found in the chunks of a row.
//
// Include after sampling_key.glsl and sampling_views.glsl; needs GL_KHR_shader_subgroup_shuffle.
#ifndef HEARTH_SAMPLING_SUMMARY_GLSL
#define HEARTH_SAMPLING_SUMMARY_GLSL

struct RowSummary {
  uint best_key, best_id, lowest_key;
  float log_sum;  // ln of the sum of exp(logit - largest)
};

// Whether a token can be chosen: there is a candidate, and no logit is NaN.
bool has_choice(RowSummary row) {
  return row.best_key > kMinusInfinityKey && row.lowest_key != kNanKey;
}

// The result of a row that has no choice. Its id is in the vocabulary, because the next step may
// already be reading it.
SamplingResult no_choice(RowSummary row) {
  return SamplingResult(0, uintBitsToFloat(kMinusInfinityBits),
                        row.lowest_key == kNanKey ? kNanLogits : 0, 0);
}

// What sample_scan found in a chunk; for a chunk past the last, a neutral element.
SamplingChunk chunk_at(uint64_t chunks, uint count, uint c) {
  const SamplingChunk chunk = SamplingChunks(chunks).at[min(c, count - 1)];
  return c < count ? chunk : SamplingChunk(0, 0xffffffffu, 0xffffffffu, 0, 0);
}

// Combines all chunks. Every subgroup does all of it, so that none waits for another, and in a fixed
// order, so that the last bit of the sum does not depend on the number of lanes.
RowSummary summarize(uint64_t chunks, uint count) {
  const uint lane = gl_SubgroupInvocationID, lanes = gl_SubgroupSize;
  RowSummary row = RowSummary(0, 0xffffffffu, 0xffffffffu, 0.0);
  for (uint first = 0; first < count; first += lanes) {
    const SamplingChunk chunk = chunk_at(chunks, count, first + lane);
    const uint best_key = subgroupMax(chunk.best_key);
    const uint best_id = subgroupMin(chunk.best_key == best_key ? chunk.best_id : 0xffffffffu);
    // Ids increase from chunk to chunk.
    if (best_key > row.best_key) {
      row.best_key = best_key;
      row.best_id = best_id;
    }
    row.lowest_key = min(row.lowest_key, subgroupMin(chunk.lowest_key));
  }
  if (row.best_key <= kMinusInfinityKey) return row;
  precise float sum = 0.0;
  for (uint first = 0; first < count; first += lanes) {
    const SamplingChunk chunk = chunk_at(chunks, count, first + lane);
    const float limbs = float(chunk.sum_high) + float(chunk.sum_low) / float(1u << kLimbBits);
    precise const float distance = key_logit(row.best_key) - key_logit(chunk.best_key);
    const bool counts = chunk.best_key > kMinusInfinityKey && distance < kMaxDistance;
    precise const float part =
        counts ? limbs / float(1u << kLimbBits) * exp_minus(distance) : 0.0;
    const uint end = min(lanes, count - first);
    for (uint c = 0; c < end; ++c) sum += subgroupShuffle(part, c);
  }
  row.log_sum = log(sum);
  return row;
}

#endif
