// Which proposal a row accepts: the one that may follow it and is the token that it has sampled.
//
// Include after sampling_views.glsl and the kernel's params.
#ifndef HEARTH_SAMPLING_ACCEPT_GLSL
#define HEARTH_SAMPLING_ACCEPT_GLSL

// The id of the first proposal in `left`, as bits. A draft model's step may have left it on the device.
// Without a proposal, or a place there, the addresses must be valid all the same, for lavapipe.
uint first_proposed(SamplingRow row, uint left) {
  const bool any = left != 0;
  const uint given = U32(params.words).at[any ? row.proposals + uint(findLSB(left)) : 0];
  const bool is_sampled = any && (given & kSampledId) != 0;
  const uint sampled = U32(params.ids).at[is_sampled ? given & ~kSampledId : 0];
  return is_sampled ? sampled : given;
}

// Counts down instead of asking for `left`, from which lavapipe would conclude that there is a proposal.
uint accepted_proposal(SamplingRow row, uint id) {
  uint left = row.followers;
  for (uint count = bitCount(left); count > 0; --count) {
    if (first_proposed(row, left) == id) return uint(findLSB(left));
    left &= left - 1;
  }
  return kNoProposal;
}

#endif
