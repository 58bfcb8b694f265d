// Merges the subgroups of a workgroup, each with a softmax over its own keys, in shared memory. A
// workgroup of one subgroup executes no barrier.
//
// Include after attention_work.glsl and attention_score.glsl; needs kSubgroups and kRows.
#ifndef HEARTH_ATTENTION_MERGE_SUBGROUPS_GLSL
#define HEARTH_ATTENTION_MERGE_SUBGROUPS_GLSL

shared vec4 shared_sums[kSubgroups > 1 ? kSubgroups * kRows * kRowQuads : 1];
shared vec2 shared_stats[kSubgroups > 1 ? kSubgroups * kRows : 1];

// Takes quad `quad` of the subgroup's sum of a row; `stats` are its max and its sum of weights.
void emit_quad(Work work, uint subgroup, uint row, uint quad, vec4 sum, vec2 stats) {
  if (kSubgroups == 1) {
    if (has_row(work, row)) write_quad(work, row, quad, sum, stats);
    return;
  }
  const uint at = subgroup * kRows + row;
  shared_sums[at * kRowQuads + quad] = sum;
  if (quad == 0) shared_stats[at] = stats;
}

// To be called by every invocation, after emit_quad() for all quads of the rows.
void merge_subgroups(Work work) {
  if (kSubgroups == 1) return;
  barrier();
  for (uint at = gl_LocalInvocationID.x; at < kRows * kRowQuads; at += gl_WorkGroupSize.x) {
    const uint r = at / kRowQuads;
    if (!has_row(work, r)) break;
    float new_max = kNoMax;
    [[unroll]] for (uint s = 0; s < kSubgroups; ++s)
      new_max = max(new_max, shared_stats[s * kRows + r].x);
    vec4 sum = vec4(0);
    float weights = 0.0;
    [[unroll]] for (uint s = 0; s < kSubgroups; ++s) {
      const vec2 stats = shared_stats[s * kRows + r];
      const float shrink = exp2(stats.x - new_max);
      weights += stats.y * shrink;
      sum += shared_sums[s * kRows * kRowQuads + at] * shrink;
    }
    write_quad(work, r, at % kRowQuads, sum, vec2(new_max, weights));
  }
}

#endif
