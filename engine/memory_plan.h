// Whether a model fits a device, from its header alone: how the memory is divided between weights,
// activations and KV blocks. Pure.
#pragma once

#include <cstdint>

#include "engine/model/activations.h"
#include "engine/model/model.h"
#include "runtime/device_caps.h"

namespace hearth {

struct MemoryRequest {
  StepLimits limits;       // limits.context 0: as long as the model was made for
  uint32_t kv_blocks = 0;  // 0: as many as are useful and fit
};

struct MemoryPlan {
  uint64_t weight_bytes = 0;
  uint64_t activation_bytes = 0;  // step inputs included
  uint64_t kv_bytes_per_token = 0;
  uint64_t kv_bytes_per_block = 0;
  uint64_t free_bytes = 0;  // what the device gives
  uint32_t context = 0;     // that was asked for
  uint32_t kv_blocks =
      0;  // that there will be; at least one sequence of `context` tokens if it fits
  uint32_t max_context = 0;  // the longest sequence that fits, at most what the model was made for
  bool fits = false;         // one sequence of `context` tokens does

  uint64_t total_bytes() const {
    return weight_bytes + activation_bytes + kv_blocks * kv_bytes_per_block;
  }
};

MemoryPlan plan_memory(const DeviceCaps& caps, uint64_t free_bytes, const ModelPlan& model,
                       const MemoryRequest& request);

}  // namespace hearth
