// Which proposal a row accepts: the one that may follow it and is the token that it has sampled.
//
// Include after sampling_views.glsl and the kernel's params.
#ifndef HEARTH_SAMPLING_ACCEPT_GLSL
#define HEARTH_SAMPLING_ACCEPT_GLSL

// 1 + the first of the row's followers that is `id`, or 0. A draft model's step may have left a follower's id
// on the device. Lavapipe loads also where no lane gets to, so every index is 0 unless there is something.
uint accepted_proposal(SamplingRow row, uint id) {
  const int last = findMSB(row.followers);
  uint accepted = 0;
  for (int i = max(findLSB(row.followers), 0); i <= last && accepted == 0; ++i) {
    const bool follows = (row.followers >> (i & 31) & 1) != 0;
    const uint given = U32(params.words).at[follows ? row.proposals + uint(i & 31) : 0];
    const bool is_sampled = follows && (given & kSampledId) != 0;
    const uint sampled = U32(params.ids).at[is_sampled ? given & ~kSampledId : 0];
    if (follows && (is_sampled ? sampled : given) == id) accepted = uint(i) + 1;
  }
  return accepted;
}

#endif
