// Finds out whether chains (chain.h) work on a device, which no driver reports.
#pragma once

#include "runtime/result.h"

namespace hearth {

class Device;
class PipelineStore;

// Runs a chain of kernels with more workgroups than the GPU runs at once, each of which reads what
// others wrote in the link before. If a kernel gives up waiting or reads stale values, chains are
// turned off for the device (ordered_groups) and the log says so. Does nothing on devices without
// chains. Call it before the first kernel is chosen. Fails only if the device does.
Status check_chain(Device& device, PipelineStore& pipelines);

}  // namespace hearth
