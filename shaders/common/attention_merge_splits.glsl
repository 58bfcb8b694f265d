// Merges the partial results of a tile's splits, in whichever of their workgroups finishes last:
//
//   m = max over splits of max[s];  weight[s] = 2^(max[s] - m)
//   result = (sum over s of weight[s] * sums[s]) / (sum over s of weight[s] * sum[s])
//
// No workgroup waits for another, and splits are added in their order, so that the result does not
// depend on which one was last.
//
// Include after attention_work.glsl and attention_score.glsl; needs kSubgroups, per workgroup,
// and kSubgroupSize.
#ifndef HEARTH_ATTENTION_MERGE_SPLITS_GLSL
#define HEARTH_ATTENTION_MERGE_SPLITS_GLSL
#include "common/last_workgroup.glsl"

// Whether all other splits of the tile have arrived; the counter is then reset. Every tile has its own
// rows, with at most one workgroup per head for each, so [row, head] is a free counter.
bool is_last_split(Work work) {
  const uint at = work.item.first_row * kHeads + work.workgroup;
  if (kSubgroups == 1) {
    Counts counts = Counts(params.counts);
    // Every lane increments the counter, so no barrier is needed.
    fence_queue();
    const uint before = subgroupMax(
        atomicAdd(counts.at[at], 1, gl_ScopeQueueFamily, 0, gl_SemanticsRelaxed));
    const bool last = before + 1 == work.item.splits * gl_WorkGroupSize.x;
    if (last) atomicStore(counts.at[at], 0u, gl_ScopeQueueFamily, 0, gl_SemanticsRelaxed);
    fence_queue();
    return last;
  }
  return is_last_workgroup(params.counts, at, work.item.splits);
}

// To be called by every invocation of a workgroup that has written its quads.
void merge_splits(Work work) {
  if (work.item.splits == 1 || !is_last_split(work)) return;
  // Splits whose loads are in flight together. AMD's GCN has registers for fewer.
  const uint kAtOnce = kSubgroupSize >= 64 ? 8 : 16;
  for (uint i = gl_LocalInvocationIndex; i < kRows * kRowQuads; i += gl_WorkGroupSize.x) {
    const uint row = i / kRowQuads, quad = i % kRowQuads;
    if (!has_row(work, row)) break;
    vec4 sum = vec4(0);
    float max_score = kNoMax, weight_sum = 0.0;
    for (uint first = 0; first < work.item.splits; first += kAtOnce) {
      vec4 sums[kAtOnce];
      vec2 stats[kAtOnce];
      [[unroll]] for (uint s = 0; s < kAtOnce; ++s) {
        F32x4 from = partial_row(work, min(first + s, work.item.splits - 1), row);
        sums[s] = from.at[quad];
        stats[s] = from.at[kRowQuads].xy;
      }
      float new_max = max_score;
      [[unroll]] for (uint s = 0; s < kAtOnce; ++s) new_max = max(new_max, stats[s].x);
      const float shrink = exp2(max_score - new_max);
      max_score = new_max;
      sum *= shrink;
      weight_sum *= shrink;
      [[unroll]] for (uint s = 0; s < kAtOnce; ++s) {
        const float weight = first + s < work.item.splits ? exp2(stats[s].x - new_max) : 0.0;
        sum += weight * sums[s];
        weight_sum += weight * stats[s].y;
      }
    }
    write_row(work, row, quad, sum, max_score, weight_sum);
  }
}

#endif
