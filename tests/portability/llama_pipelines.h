// The pipelines that steps of a llama-8b need on a device, found out without one: they are what
// plans of such steps dispatch.
#pragma once

#include <vector>

#include "runtime/device_caps.h"
#include "runtime/pipeline.h"
#include "runtime/result.h"

namespace hearth::testing {

struct NeededPipeline {
  PipelineInfo info;
  // Its time is that of reading memory: weights that are used for a few rows, or rows on their way
  // from one product to the next.
  bool memory_bound = false;
};

// Of weights in F16, Q8_0 and Q4_K_M; of steps with 1, 8 and 64 single tokens, short and long
// contexts, and of a prompt of 2,048; each pipeline once.
Result<std::vector<NeededPipeline>> llama_pipelines(const DeviceCaps& caps);

}  // namespace hearth::testing
