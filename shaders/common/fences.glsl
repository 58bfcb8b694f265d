// How workgroups that run at the same time pass memory to each other: one invocation synchronizes with
// the other workgroups, between a barrier of its own workgroup before and one after. A queue-wide fence
// by every invocation costs more.
#ifndef HEARTH_FENCES_GLSL
#define HEARTH_FENCES_GLSL

// A barrier that also makes each invocation's writes to buffers and shared memory visible to all others
// of the workgroup.
void sync_workgroup() {
  controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup,
                 gl_StorageSemanticsBuffer | gl_StorageSemanticsShared,
                 gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible);
}

// Makes writes visible to this invocation available to the whole queue, and the queue's visible to it.
void fence_queue() {
  memoryBarrier(gl_ScopeQueueFamily, gl_StorageSemanticsBuffer,
                gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible);
}

#endif
