// The engine's metrics under the names that vLLM gives them, for gateways and autoscalers that
// know no others. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "engine/metrics.h"

namespace hearth {

struct VllmFacts {
  std::string model;            // the label model_name of every sample
  uint32_t block_tokens = 0;    // tokens per KV block
  uint32_t pool_blocks = 0;     // KV blocks
  bool prefix_caching = false;  // by the policy
};

std::string vllm_metrics_text(const Metrics& metrics, const VllmFacts& facts);

}  // namespace hearth
