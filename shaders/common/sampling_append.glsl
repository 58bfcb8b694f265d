// Counting a chosen token in its row's history. Every invocation of the workgroup must call append().
//
// Include after sampling_reduce.glsl, sampling_views.glsl and the kernel's params.
#ifndef HEARTH_SAMPLING_APPEND_GLSL
#define HEARTH_SAMPLING_APPEND_GLSL

// Counts the token in its slot's history; a full history is left unchanged.
void append(SamplingRow wanted, uint token) {
  U32 lengths = U32(params.history_lengths);
  const uint length = min(lengths.at[wanted.history_slot], params.history_capacity);
  TokenCounts history = TokenCounts(
      params.history + uint64_t(wanted.history_slot) * params.history_capacity * 8);
  uint at = length;
  for (uint i = gl_LocalInvocationID.x; i < length; i += gl_WorkGroupSize.x)
    if (history.at[i].token == token) at = i;
  at = workgroup_min(at);
  if (gl_LocalInvocationID.x != 0) return;
  if (at < length) {
    ++history.at[at].count;
  } else if (length < params.history_capacity) {
    history.at[length] = TokenCount(token, 1);
    lengths.at[wanted.history_slot] = length + 1;
  }
}

#endif
