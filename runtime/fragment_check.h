// What no driver tells of its cooperative matrices.
#pragma once

#include "runtime/result.h"

namespace hearth {

class Device;
class PipelineStore;

// Runs a small product to find out whether lanes hold fragments as
// shaders/common/fragment_lanes.glsl says, and notes it in the device's capabilities
// (lane_fragments). For whoever is going to choose kernels, before the first choice. Fails only
// where the device does.
Status check_fragments(Device& device, PipelineStore& pipelines);

}  // namespace hearth
