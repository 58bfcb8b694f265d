// The drivers that are known to run chains (chain.h) correctly.
#pragma once

#include "runtime/device_caps.h"

namespace hearth {

// Whether this driver starts the workgroups of a queue in the order of their dispatches. Drivers
// that were never tried do not count, whatever GPU they drive: NVK and NVIDIA's own driver may
// schedule the same GPU differently.
bool may_chain(const DeviceCaps& caps);

}  // namespace hearth
