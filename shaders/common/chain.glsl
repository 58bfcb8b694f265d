// Waits for earlier dispatches inside the kernel instead of at a barrier before it: runtime/chain.h says
// when and why. A kernel that includes this calls chain_wait() before it reads what an earlier dispatch
// wrote, or writes anything, and calls chain_done() last; every invocation must reach both. Weights, and
// what the host wrote for the step, may be read before chain_wait().
//
// No wait lasts forever: after kChainPolls polls a workgroup gives up, says so in the chain's state, and
// continues with whatever it finds. The host then runs the step again with barriers. So that this gives the
// right result, kernels that change what outlives a step (the KV cache, histories, sampled ids) leave it
// alone once chain_failed_before(), or do not run twice: chain_state.glsl.
// Expects the kernel's params.
#ifndef HEARTH_CHAIN_GLSL
#define HEARTH_CHAIN_GLSL
#include "common/fences.glsl"

layout(constant_id = 100) const uint kChained = 0;  // set by the pipeline store (runtime/pipeline.h)

layout(buffer_reference, std430, buffer_reference_align = 4) buffer ChainCount { uint value; };

// As in runtime/chain.h: bytes per link, and of the whole chain, which is aligned to its size.
const uint kChainStride = 256, kChainBytes = 256 * 1024;

// A poll takes 0.3 us on an H200, so that it gives up after half a second; the longest kernel of a chain
// takes a few milliseconds.
const uint kChainPolls = 1u << 21;
// Once one workgroup has given up, the others need not wait as long: they look after as many polls.
const uint kChainGlance = 256;

// The first bytes of the chain's memory: ChainState in runtime/chain.h.
layout(buffer_reference, std430, buffer_reference_align = 16) nonprivate buffer ChainState {
  uint failed;
  uint unused;
  uint64_t host_failed;
};
ChainState chain_state() { return ChainState(params.chain_counter & ~uint64_t(kChainBytes - 1)); }

// Whether a wait has failed on this device. Kernels of later submissions always see it; in the same
// submission, those that depend on the kernel that gave up, once they have waited. Different invocations
// may get different answers.
bool chain_failed() {
  if (kChained == 0 || params.chain_counter == 0) return false;
  return atomicLoad(chain_state().failed, gl_ScopeQueueFamily, 0, gl_SemanticsRelaxed) != 0;
}

// Whether a wait has failed in an earlier submission. An ordinary load, which is cheaper: for kernels
// whose writes are right if they run again, but must not precede what an earlier step has yet to read.
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer EarlierChainState {
  uint failed;
};
bool chain_failed_before() {
  if (kChained == 0 || params.chain_counter == 0) return false;
  return EarlierChainState(params.chain_counter & ~uint64_t(kChainBytes - 1)).failed != 0;
}

// Whether this dispatch is counted: its counter is not the chain's first word.
bool chain_counts() { return (uint(params.chain_counter) & (kChainBytes - 1)) != 0; }

uint chain_add(uint64_t place) {
  return atomicAdd(ChainCount(place).value, 1, gl_ScopeQueueFamily, 0, gl_SemanticsRelaxed);
}

// To be called by one invocation of the workgroup.
void wait_for_arrivals() {
  ChainCount before = ChainCount((params.chain_counter & ~uint64_t(kChainStride - 1)) - kChainStride);
  for (uint polls = 1;
       atomicLoad(before.value, gl_ScopeQueueFamily, 0, gl_SemanticsRelaxed) < params.chain_wait; ++polls) {
    if (polls % kChainGlance == 0 && chain_failed()) return;
    if (polls < kChainPolls) continue;
    atomicStore(chain_state().failed, 1u, gl_ScopeQueueFamily, 0, gl_SemanticsRelaxed);
    U32(chain_state().host_failed).at[0] = 1;
    return;
  }
}

void chain_wait() {
  if (kChained == 0 || params.chain_wait == 0) return;
  if (gl_LocalInvocationIndex == 0) {
    wait_for_arrivals();
    fence_queue();
  }
  sync_workgroup();
}

// For kernels that read the output of earlier dispatches only through fresh views (kernel.glsl), each
// element a few times at most. The Vulkan memory model requires an acquire here as well. Drivers turn it
// into a round trip to memory, 0.3 us per link on an H200, for an ordering that holds anyway on the
// devices that run chains: no invocation passes the barrier before the counter has been read, and loads
// that start after it and bypass the caches see everything that was made available before the counter
// was incremented.
void chain_wait_fresh() {
  if (kChained == 0 || params.chain_wait == 0) return;
  if (gl_LocalInvocationIndex == 0) wait_for_arrivals();
  sync_workgroup();
}

// To be called by one invocation, after a barrier that follows all of the workgroup's writes.
void arrive() {
  fence_queue();
  const uint before = chain_add(params.chain_counter);
  if (before + 1 == params.chain_groups) {
    fence_queue();
    chain_add(params.chain_counter & ~uint64_t(kChainStride - 1));
  }
}

void chain_done() {
  if (kChained == 0 || !chain_counts()) return;
  sync_workgroup();
  if (gl_LocalInvocationIndex == 0) arrive();
}

// The same for a workgroup that has executed a barrier after all its reads, and in which only the first
// subgroup has written since.
void chain_done_alone() {
  if (kChained == 0 || !chain_counts() || gl_SubgroupID != 0) return;
  controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsBuffer,
                 gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible);
  if (gl_SubgroupInvocationID == 0) arrive();
}

#endif
