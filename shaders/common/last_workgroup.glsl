// Lets workgroups compute one result together without waiting for each other: each writes its part and
// increments a counter, and the last one to do so finishes the result from all parts.
#ifndef HEARTH_LAST_WORKGROUP_GLSL
#define HEARTH_LAST_WORKGROUP_GLSL
#include "common/fences.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Counts { uint at[]; };

// A word of shared memory that is unused between two barriers; kernels without room for one more word
// define it themselves.
#ifndef LAST_WORKGROUP_SCRATCH
shared uint last_workgroup_scratch;
#define LAST_WORKGROUP_SCRATCH last_workgroup_scratch
#endif

// Whether all other `groups` - 1 workgroups have incremented the counter at `at`, which must be zero
// before the first of them; it is then reset. Every invocation of the workgroup must call it.
bool is_last_workgroup(uint64_t counts, uint at, uint groups) {
  sync_workgroup();
  if (gl_LocalInvocationIndex == 0) {
    fence_queue();
    const uint before =
        atomicAdd(Counts(counts).at[at], 1, gl_ScopeQueueFamily, 0, gl_SemanticsRelaxed);
    LAST_WORKGROUP_SCRATCH = before;
    if (before + 1 == groups)
      atomicStore(Counts(counts).at[at], 0u, gl_ScopeQueueFamily, 0, gl_SemanticsRelaxed);
    fence_queue();
  }
  sync_workgroup();
  return LAST_WORKGROUP_SCRATCH + 1 == groups;
}

#endif
