// chain_wait() for kernels that change what outlives a step, and so must not run twice on wrong input.
// Apart from chain.glsl because it needs a word of shared memory.
#ifndef HEARTH_CHAIN_STATE_GLSL
#define HEARTH_CHAIN_STATE_GLSL
#include "common/chain.glsl"

shared uint chain_state_failed;

// Waits, and returns whether what this kernel reads is right. If not, the host runs the step again: change
// nothing, and call chain_done(). The same for every invocation of the workgroup.
bool chain_wait_intact() {
  if (kChained == 0 || params.chain_counter == 0) return true;
  if (gl_LocalInvocationIndex == 0) {
    if (params.chain_wait != 0) wait_for_arrivals();
    fence_queue();
    chain_state_failed = chain_failed() ? 1 : 0;
  }
  sync_workgroup();
  return chain_state_failed == 0;
}

#endif
