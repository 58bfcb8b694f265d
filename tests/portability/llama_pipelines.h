// The pipelines that steps of a llama-8b need on a device, found out without one: every op of a
// layer is recorded dry, with and without what the device's kernels can fuse.
#pragma once

#include <string>
#include <vector>

#include "engine/weights/formats.h"
#include "runtime/device_caps.h"
#include "runtime/pipeline.h"

namespace hearth::testing {

// The formats of its weights, as in files of that name.
struct LlamaWeights {
  const char* name;
  WeightFormat most;    // embedding, q, k, attention output, gate, up and half of the downs
  WeightFormat rest;    // v, and the other half of the downs
  WeightFormat output;  // logits
};

inline constexpr LlamaWeights kLlamaWeights[] = {
    {"F16", WeightFormat::kF16, WeightFormat::kF16, WeightFormat::kF16},
    {"Q8_0", WeightFormat::kQ8_0, WeightFormat::kQ8_0, WeightFormat::kQ8_0},
    {"Q4_K_M", WeightFormat::kQ4K, WeightFormat::kQ6K, WeightFormat::kQ6K},
};

struct NeededPipeline {
  PipelineInfo info;
  // Its time is that of reading memory: weights that are used for a few rows, or rows on their way
  // from one product to the next.
  bool memory_bound = false;
};

// Of a step with `sequences` sequences of `rows` new tokens each. An op that cannot be recorded is
// an error.
Result<std::vector<NeededPipeline>> llama_pipelines(const DeviceCaps& caps,
                                                    const LlamaWeights& weights, uint32_t sequences,
                                                    uint32_t rows);

}  // namespace hearth::testing
