// Biases, penalties, DRY and token masks, applied in place to the logits of one chunk of a row before
// sample_scan reads them. Every invocation of the workgroup must call adjust().
//
// Include after sampling_views.glsl and params/sample_scan.h; needs kExtras.
#ifndef HEARTH_SAMPLING_ADJUST_GLSL
#define HEARTH_SAMPLING_ADJUST_GLSL

// For logits that another lane of the workgroup writes before a barrier.
layout(buffer_reference, std430, buffer_reference_align = 4) workgroupcoherent buffer SharedF32 {
  float at[];
};
layout(buffer_reference, std430, buffer_reference_align = 4) workgroupcoherent buffer SharedU32 {
  uint at[];
};

shared uint path_tokens[kExtras != 0 ? kMaxProposals : 1];
shared uint path_in_history;  // bit j: path_tokens[j] is in the history

bool has_penalties(SamplingRow row) {
  return row.history_slot != kNoHistory &&
         (row.repetition != 1.0 || row.presence != 0.0 || row.frequency != 0.0);
}

bool has_mask(SamplingRow row) { return kExtras != 0 && (row.flags & kSamplingMask) != 0; }

bool has_dry(SamplingRow row) { return kExtras != 0 && (row.flags & kSamplingDry) != 0; }

bool changes_logits(SamplingRow row) {
  return row.bias_count > 0 || has_penalties(row) || has_dry(row) || has_mask(row);
}

// Waits for the other lanes' changes to logits and shared memory.
void sync_changes() {
  memoryBarrierBuffer();
  barrier();
}

void penalize(SamplingRow row, SharedF32 logits, uint token, uint count) {
  float logit = logits.at[token];
  logit = logit > 0.0 ? logit / row.repetition : logit * row.repetition;
  logit -= row.frequency * float(count) + (count > 0 ? row.presence : 0.0);
  logits.at[token] = logit;
}

// Loads the path's tokens, in their order.
void load_path(SamplingRow row) {
  for (uint i = gl_LocalInvocationID.x; i < kMaxProposals; i += gl_WorkGroupSize.x) {
    const bool on_path = (row.path >> i & 1) != 0;
    // Lanes without a token load the first one: the address must be valid on lavapipe.
    const uint token = U32(params.words).at[on_path ? row.proposals + i : 0];
    if (on_path) path_tokens[bitCount(row.path & ((1u << i) - 1))] = token;
  }
  if (gl_LocalInvocationID.x == 0) path_in_history = 0;
  barrier();
}

// The places of a token on the path, as bits.
uint path_places(uint path_length, uint token) {
  uint places = 0;
  for (uint j = 0; j < path_length; ++j) places |= path_tokens[j] == token ? 1u << j : 0;
  return places;
}

// Penalties for tokens of the path that are not in the history: as if they had been appended to it one
// after the other, as long as it has room.
void penalize_path(SamplingRow row, SharedF32 logits, uint path_length, uint room, uint begin,
                   uint end) {
  barrier();  // path_in_history is complete
  for (uint j = gl_LocalInvocationID.x; j < path_length; j += gl_WorkGroupSize.x) {
    const uint token = path_tokens[j];
    const uint places = path_places(path_length, token);
    if (token < begin || token >= end || findLSB(places) != int(j) ||
        (path_in_history >> j & 1) != 0)
      continue;
    uint appended_before = 0;
    for (uint k = 0; k < j; ++k)
      appended_before += (path_in_history >> k & 1) == 0 &&
                                 findLSB(path_places(path_length, path_tokens[k])) == int(k)
                             ? 1
                             : 0;
    if (appended_before < room) penalize(row, logits, token, bitCount(places));
  }
}

// `begin` and `end` are the chunk's tokens.
void penalize_history(SamplingRow row, SharedF32 logits, uint begin, uint end) {
  const uint length =
      min(U32(params.history_lengths).at[row.history_slot], params.history_capacity);
  TokenCounts history =
      TokenCounts(params.history + uint64_t(row.history_slot) * params.history_capacity * 8);
  const uint path_length = kExtras != 0 ? bitCount(row.path) : 0;
  if (path_length > 0) load_path(row);
  // If not all of the path fits into the history, this chunk must know which tokens of others are new.
  const bool crowded = length + path_length > params.history_capacity;
  for (uint i = gl_LocalInvocationID.x; i < length; i += gl_WorkGroupSize.x) {
    const TokenCount entry = history.at[i];
    const bool inside = entry.token >= begin && entry.token < end;
    if (!inside && !(path_length > 0 && crowded)) continue;
    uint count = entry.count;
    if (path_length > 0) {
      const uint places = path_places(path_length, entry.token);
      if (places != 0) atomicOr(path_in_history, places);
      count += bitCount(places);
    }
    if (inside) penalize(row, logits, entry.token, count);
  }
  if (path_length > 0)
    penalize_path(row, logits, path_length, params.history_capacity - length, begin, end);
}

// Subtracts the DRY penalties, which the host has computed.
void penalize_repeats(SamplingRow row, SharedF32 logits, uint begin, uint end) {
  // Even without a list the address must be valid on lavapipe.
  U32 list = U32(params.words + (has_dry(row) ? uint64_t(row.dry) * 4 : 0));
  const uint count = has_dry(row) ? list.at[0] : 0;
  for (uint i = gl_LocalInvocationID.x; i < count; i += gl_WorkGroupSize.x) {
    const uint token = list.at[1 + 2 * i];
    if (token >= begin && token < end) logits.at[token] -= uintBitsToFloat(list.at[2 + 2 * i]);
  }
}

// NaN stays, so that it is reported even if the mask has no bit for its token.
void apply_mask(SamplingRow row, uint64_t row_logits, uint begin, uint end) {
  // Even without a mask the address must be valid on lavapipe.
  U32 mask = U32(has_mask(row) ? params.words + uint64_t(row.mask) * 4 : row_logits);
  SharedU32 logits = SharedU32(row_logits);
  for (uint token = begin + gl_LocalInvocationID.x; token < end; token += gl_WorkGroupSize.x)
    if ((mask.at[token / 32] >> token % 32 & 1) == 0 && !is_nan(logits.at[token]))
      logits.at[token] = kMinusInfinityBits;
}

// Biases first, then penalties, then DRY, then the mask, with barriers in between: all may change the same token.
void adjust(SamplingRow row, uint64_t row_logits, uint begin, uint end) {
  SharedF32 logits = SharedF32(row_logits);
  TokenBiases biases = TokenBiases(params.biases);
  for (uint i = gl_LocalInvocationID.x; i < row.bias_count; i += gl_WorkGroupSize.x) {
    const TokenBias entry = biases.at[row.bias_offset + i];
    if (entry.token >= begin && entry.token < end) logits.at[entry.token] += entry.bias;
  }
  sync_changes();
  if (has_penalties(row)) {
    penalize_history(row, logits, begin, end);
    sync_changes();
  }
  if (has_dry(row)) {
    penalize_repeats(row, logits, begin, end);
    sync_changes();
  }
  if (has_mask(row)) {
    apply_mask(row, row_logits, begin, end);
    sync_changes();
  }
}

#endif
