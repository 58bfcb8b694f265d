#include "tools/bench/step_cost.h"

#include <algorithm>

#include "engine/model/step_planner.h"
#include "engine/ops/sampling.h"

namespace hearth {
namespace {

// The batch's own sizes, without padding.
StepBucket exact_bucket(const StepBatch& batch) {
  uint32_t longest = 0;
  for (const params::StepSequence& sequence : batch.sequences)
    longest = std::max(longest, sequence.rows);
  return {.rows = static_cast<uint32_t>(batch.ids.size()),
          .sequences = static_cast<uint32_t>(batch.sequences.size()),
          .sequence_rows = longest,
          .logit_rows = static_cast<uint32_t>(batch.logit_rows.size())};
}

}  // namespace

PartCosts step_costs(const ModelPlan& model, KvFormat kv, const StepBatch& batch) {
  const StepBucket bucket = exact_bucket(batch);
  const ModelConfig& config = model.config;
  PartCosts costs =
      part_costs({.weights = model.shapes,
                  .attention = step_attention_shape(config, kv, bucket, config.context),
                  .sequences = batch.sequences},
                 step_ops(model, bucket));
  if (bucket.logit_rows > 0 && config.samples())
    costs[step_part::kSampling] +=
        sampling_cost({.rows = bucket.logit_rows, .vocab = config.vocabulary});
  return costs;
}

Cost whole_step_cost(const ModelPlan& model, KvFormat kv, const StepBatch& batch) {
  Cost whole;
  for (const auto& [part, cost] : step_costs(model, kv, batch))
    whole += {.bytes = cost.memory_bytes, .flops = cost.operations};
  return whole;
}

}  // namespace hearth
