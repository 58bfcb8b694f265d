#include "engine/memory_plan.h"

#include <algorithm>

#include "engine/model/kv_cache.h"
#include "engine/model/step_inputs.h"
#include "engine/model/step_runner.h"
#include "engine/scheduling/batch_plan.h"

namespace hearth {
namespace {

// The rest is for pipelines, command buffers, the driver and other programs.
constexpr double kUsableShare = 0.95;

// A larger pool would be useless: this holds every sequence at its longest, and as much again for
// cached prefixes of finished requests, and a block for each candidate of contrastive search.
uint64_t useful_blocks(const StepLimits& limits) {
  return 2 * uint64_t{limits.sequences} * blocks_for(limits.context) + limits.candidates;
}

}  // namespace

MemoryPlan plan_memory(const DeviceCaps& caps, uint64_t free_bytes, const ModelPlan& model,
                       const MemoryRequest& request) {
  const ModelConfig& config = model.config;
  StepLimits limits = request.limits;
  if (limits.context == 0 || limits.context > config.context) limits.context = config.context;

  MemoryPlan plan{.weight_bytes = model.weight_bytes,
                  .companion_bytes = request.companion_bytes,
                  .companion_bytes_per_block = request.companion_bytes_per_block,
                  .free_bytes = free_bytes,
                  .context = limits.context};
  plan.activation_bytes = activation_sizes(caps, config, model.matmuls, limits).total() +
                          StepInputs::kCopies * step_input_bytes(caps, config, limits,
                                                                 attention_windows(config).size()) +
                          limits.sequences * slot_bytes();
  const uint32_t holders = config.deal.ranks;
  plan.kv_bytes_per_block = divide_up(kv_bytes_per_block(config, limits.kv), holders);
  plan.kv_bytes_per_token = plan.kv_bytes_per_block / kTokensPerBlock;

  const auto usable = static_cast<uint64_t>(static_cast<double>(free_bytes) * kUsableShare);
  const uint64_t fixed = plan.weight_bytes + plan.activation_bytes + plan.companion_bytes;
  uint64_t room = 0;
  if (fixed < usable && plan.kv_bytes_per_block > 0)
    room = std::min((usable - fixed) / (plan.kv_bytes_per_block + plan.companion_bytes_per_block),
                    holders * most_kv_blocks(config, limits.kv, caps.limits.max_allocation_bytes));
  room -= room % holders;  // every rank has as many
  plan.max_context =
      static_cast<uint32_t>(std::min<uint64_t>(room * kTokensPerBlock, config.context));
  plan.fits = plan.max_context >= limits.context;
  const uint64_t wanted = request.kv_blocks != 0 ? request.kv_blocks : useful_blocks(limits);
  plan.kv_blocks = static_cast<uint32_t>(std::min<uint64_t>({wanted, room, UINT32_MAX}));
  return plan;
}

}  // namespace hearth
