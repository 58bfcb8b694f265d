// Whether a model fits on a device, computed from its header: how memory is divided among weights,
// activations and KV blocks. Pure.
#pragma once

#include <cstdint>

#include "engine/model/activations.h"
#include "engine/model/model.h"
#include "runtime/device_caps.h"

namespace hearth {

struct MemoryRequest {
  StepLimits limits;       // limits.context 0: the model's own
  uint32_t kv_blocks = 0;  // 0: as many as are useful and fit
  // What companion models take: their weights and activations, and their share of each block.
  uint64_t companion_bytes = 0, companion_bytes_per_block = 0;
};

struct MemoryPlan {
  uint64_t weight_bytes = 0;
  uint64_t activation_bytes = 0;  // step inputs included
  // On this device. If ranks share the blocks, on average: each has all of some.
  uint64_t kv_bytes_per_token = 0;
  uint64_t kv_bytes_per_block = 0;
  uint64_t companion_bytes = 0, companion_bytes_per_block = 0;  // as requested
  uint64_t free_bytes = 0;                                      // on the device
  uint32_t context = 0;      // as requested, at most the model's own
  // Size of the pool, of all ranks that share it; holds at least one full context if `fits`.
  uint32_t kv_blocks = 0;
  uint32_t max_context = 0;  // tokens of the longest sequence that fits, at most the model's own
  bool fits = false;         // whether one sequence of `context` tokens fits

  uint64_t total_bytes() const {
    return weight_bytes + activation_bytes + companion_bytes +
           kv_blocks * (kv_bytes_per_block + companion_bytes_per_block);
  }
};

MemoryPlan plan_memory(const DeviceCaps& caps, uint64_t free_bytes, const ModelPlan& model,
                       const MemoryRequest& request);

}  // namespace hearth
