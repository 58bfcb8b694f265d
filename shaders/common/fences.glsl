// What groups that run at the same time need to pass memory on to each other: one invocation deals
// with other groups, between a meeting of its own group before and one after. A fence of the whole
// queue by every invocation costs more.
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
