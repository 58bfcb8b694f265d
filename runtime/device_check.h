// What only kernels can find out about a device, because no driver reports it.
#pragma once

#include "runtime/result.h"

namespace hearth {

class Device;
class PipelineStore;

// check_chain() and check_fragments(): stores the answers in the device's capabilities. Call it
// before the first kernel is chosen. Fails only if the device does.
Status check_device(Device& device, PipelineStore& pipelines);

}  // namespace hearth
