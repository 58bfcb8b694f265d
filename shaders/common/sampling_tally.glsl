// Spreads the first pass over a row over all workgroups in x: each processes a range of segments, and
// their histograms add up in memory (the tally). The sums are of integers, so the total is what one
// workgroup alone would have found. In the pass of the draw, each workgroup has a bin for its winner
// instead. Every invocation of the workgroup must call these functions.
//
// Include after sampling_search.glsl.
#ifndef HEARTH_SAMPLING_TALLY_GLSL
#define HEARTH_SAMPLING_TALLY_GLSL
#include "common/fences.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) nonprivate buffer Tally {
  uint groups;  // that have added their histogram
  uint tokens;
  uint bins[];  // low words, then high words
};
const uint kTallyWords = 2 + 2 * kBins;

shared uint groups_before;

uint add_to_tally(Tally tally, uint bin, uint amount) {
  return atomicAdd(tally.bins[bin], amount, gl_ScopeQueueFamily, 0, gl_SemanticsRelaxed);
}

// This workgroup's range of the segments.
void take_segments(inout Row row) {
  const uint share = DIVIDE_UP(row.segment_count, gl_NumWorkGroups.x);
  row.first_segment = min(gl_WorkGroupID.x * share, row.segment_count);
  row.end_segment = min(row.first_segment + share, row.segment_count);
}

// Adds the bins and tokens of all workgroups. Returns true in the last one, which gets the totals and
// continues; the others are done.
bool merge_workgroups(Tally tally, inout uint tokens) {
  const uint lane = gl_LocalInvocationID.x;
  barrier();
  for (uint i = lane; i < kBins; i += gl_WorkGroupSize.x) {
    const uint low = bin_low[i], high = bin_high[i];
    if ((low | high) == 0) continue;
    const uint before = add_to_tally(tally, i, low);
    const uint rest = high + (before + low < before ? 1u : 0u);
    if (rest != 0) add_to_tally(tally, kBins + i, rest);
  }
  if (lane == 0) atomicAdd(tally.tokens, tokens, gl_ScopeQueueFamily, 0, gl_SemanticsRelaxed);
  sync_workgroup();
  if (lane == 0) {
    fence_queue();
    groups_before = atomicAdd(tally.groups, 1, gl_ScopeQueueFamily, 0, gl_SemanticsRelaxed);
    fence_queue();
  }
  sync_workgroup();
  if (groups_before + 1 < gl_NumWorkGroups.x) return false;
  for (uint i = lane; i < kBins; i += gl_WorkGroupSize.x) {
    bin_low[i] = tally.bins[i];
    bin_high[i] = tally.bins[kBins + i];
  }
  tokens = tally.tokens;
  barrier();
  return true;
}

#endif
