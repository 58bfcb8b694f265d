// How much may run at once, and what there is for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/scheduling/batch_plan.h"

namespace hearth {

struct SchedulerLimits {
  std::uint32_t max_sequences = 16;     // running at the same time; slots are below it
  std::uint32_t max_step_tokens = 512;  // token budget of a step, padding included
  std::uint32_t context = 2048;         // tokens per sequence, prompt and generated
  std::uint32_t pool_blocks = 1024;     // KV blocks
  std::uint32_t swap_blocks = 0;        // in host memory; 0: preemption always recomputes
  std::uint32_t max_queue = 4096;       // requests waiting for their first admission
  // Proposed and scored tokens per step, of all sequences: logit rows beyond one per sequence.
  std::uint32_t max_proposed = 0xffffffff;
  // While requests decode, prompts get no more of a step than keeps it within this many
  // milliseconds, unless the policy has a target of its own. 0: prompts may fill every step.
  std::uint32_t step_ms = 0;
};

// How many entries of a step's block tables to reserve memory for in advance.
inline std::size_t reserved_block_ids(const SchedulerLimits& limits) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  return std::min(kMost, std::size_t{limits.max_sequences} * blocks_for(limits.context));
}

}  // namespace hearth
