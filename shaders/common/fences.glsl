// How workgroups that run at the same time pass memory to each other: one invocation synchronizes with
// the other workgroups, between a barrier of its own workgroup before and one after. A queue-wide fence
// by every invocation costs more.
#ifndef HEARTH_FENCES_GLSL
#define HEARTH_FENCES_GLSL

// All invocations of the group meet; what each wrote to buffers or shared memory, all see.
void sync_workgroup() {
  controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup,
                 gl_StorageSemanticsBuffer | gl_StorageSemanticsShared,
                 gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible);
}

// What the invocation knows of written goes out to the queue, and what others sent out comes in.
void fence_queue() {
  memoryBarrier(gl_ScopeQueueFamily, gl_StorageSemanticsBuffer,
                gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible);
}

#endif
