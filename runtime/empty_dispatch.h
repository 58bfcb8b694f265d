// Makes a driver compile a kernel that it would otherwise compile when the kernel first runs, as
// Mesa's lavapipe does: runs the pipeline with no workgroups. It reads and writes nothing.
#pragma once

#include "runtime/result.h"

namespace hearth {

class Device;
class Pipeline;

// Waits for the device, and so for everything submitted to its compute queue before. Any thread.
Status dispatch_empty(Device& device, const Pipeline& pipeline);

}  // namespace hearth
