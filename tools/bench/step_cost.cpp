#include "tools/bench/step_cost.h"

#include <algorithm>
#include <cmath>

#include "engine/program/op.h"
#include "engine/model/kv_cache.h"
#include "engine/scheduling/batch_plan.h"

namespace hearth {
namespace {

std::string_view part_of(WeightRole role) {
  switch (role) {
    case WeightRole::kEmbedding:
    case WeightRole::kOutput:
      return step_part::kLogits;
    case WeightRole::kQkv:
    case WeightRole::kQkvBias:
      return step_part::kQkv;
    case WeightRole::kAttentionOut:
    case WeightRole::kAttentionOutBias:
      return step_part::kAttentionOut;
    case WeightRole::kGateUp:
      return step_part::kGateUp;
    case WeightRole::kDown:
      return step_part::kDown;
    case WeightRole::kRouter:
    case WeightRole::kRouterBias:
      return step_part::kRouter;
    case WeightRole::kExpertGateUp:
    case WeightRole::kExpertGateUpBias:
    case WeightRole::kExpertDown:
    case WeightRole::kExpertDownBias:
      return step_part::kExperts;
    case WeightRole::kSinks:
      return step_part::kAttention;
    case WeightRole::kQNorm:
    case WeightRole::kKNorm:
      return step_part::kRope;
    case WeightRole::kOutputNorm:
    case WeightRole::kAttentionNorm:
    case WeightRole::kAttentionPostNorm:
    case WeightRole::kMlpNorm:
    case WeightRole::kMlpPostNorm:
      return step_part::kNorm;
  }
  return step_part::kNorm;
}

struct StepSize {
  double rows = 0, logit_rows = 0;
  uint32_t layers = 0;

  // In the last layer, everything after attention is computed only for rows whose logits are
  // wanted.
  double after_attention(uint32_t layer) const { return layer + 1 < layers ? rows : logit_rows; }
  double rows_of(const WeightSpec& spec) const {
    switch (spec.role) {
      case WeightRole::kEmbedding:
      case WeightRole::kOutputNorm:
      case WeightRole::kOutput:
        return logit_rows;
      case WeightRole::kAttentionNorm:
      case WeightRole::kQkv:
      case WeightRole::kQkvBias:
      case WeightRole::kQNorm:
      case WeightRole::kKNorm:
        return rows;
      default:
        return after_attention(spec.layer);
    }
  }
};

// The share of experts that at least one row chooses, if all are equally likely.
double touched_share(const ModelConfig& config, double rows) {
  const double share = static_cast<double>(config.used_experts) / config.experts;
  return 1 - std::pow(1 - share, rows);
}

// Each weight is read once, and of experts only those that are chosen. Activations are the values that a part reads and writes.
void add_weights(const ModelPlan& model, const ModelFile& file, const StepSize& size,
                 StepCosts& weights, StepCosts& activations) {
  const bool tied = std::ranges::none_of(model.table.specs(), [&](const WeightSpec& spec) {
    return spec.role == WeightRole::kOutput && !plan_segments(spec, file).empty();
  });
  for (const WeightSpec& spec : model.table.specs())
    for (const SegmentPlan& segment : plan_segments(spec, file)) {
      const std::string_view part = part_of(spec.role);
      const auto outputs = static_cast<double>(segment.rows);
      const auto inputs = static_cast<double>(segment.cols);
      if (spec.role == WeightRole::kEmbedding) {
        const double row = static_cast<double>(segment.device_bytes()) / outputs;
        weights[step_part::kEmbed] += {.bytes = size.rows * row};
        activations[step_part::kEmbed] += {.bytes = size.rows * inputs * 4};
        if (!tied) continue;
      }
      const double rows = size.rows_of(spec);
      if (rows == 0) continue;
      const auto bytes = static_cast<double>(segment.device_bytes());
      if (segment.experts > 0) {
        weights[part] += {.bytes = bytes * touched_share(model.config, rows)};
        if (spec.is_vector) continue;
        const double pairs = rows * model.config.used_experts;
        const auto expert_outputs = static_cast<double>(segment.expert_rows());
        weights[part].flops += 2 * pairs * inputs * expert_outputs;
        activations[part] += {.bytes = 4 * pairs * (inputs + expert_outputs)};
        continue;
      }
      weights[part] += {.bytes = bytes};
      if (part == step_part::kNorm) {
        activations[part] += {.bytes = 8 * rows * inputs, .flops = 4 * rows * inputs};
      } else if (!spec.is_vector) {
        weights[part].flops += 2 * rows * inputs * outputs;
        activations[part] += {.bytes = 4 * rows * (inputs + outputs)};
      }
    }
}

void add_attention(const ModelConfig& config, KvFormat kv, const StepSize& size,
                   const StepBatch& batch, StepCosts& costs) {
  const double token_bytes =
      static_cast<double>(kv_bytes_per_block(config, kv)) / kTokensPerBlock / config.layers;
  for (const params::StepSequence& sequence : batch.sequences)
    for (uint32_t layer = 0; layer < config.layers; ++layer) {
      const uint32_t window = config.layer_window(layer);
      const auto seen = [&](uint32_t position) {
        return window == 0 ? position + 1 : std::min(position + 1, window);
      };
      // Each row sees one token more than the one before, up to the window.
      const double first = seen(sequence.first_position);
      const double last = seen(sequence.first_position + sequence.rows - 1);
      const double pairs = (first + last) / 2 * sequence.rows;
      // A token that any of the rows sees is read once.
      const double end = sequence.first_position + sequence.rows;
      const double tokens = end - (sequence.first_position + 1 - first);
      costs[step_part::kRope] += {.bytes = sequence.rows * token_bytes};
      if (size.after_attention(layer) == 0) continue;
      costs[step_part::kAttention] +=
          {.bytes = tokens * token_bytes, .flops = 4 * pairs * config.q_width()};
    }
}

void add_small_parts(const ModelConfig& config, const StepSize& size, StepCosts& activations) {
  for (uint32_t layer = 0; layer < config.layers; ++layer) {
    const double mlp_rows = size.after_attention(layer);
    activations[step_part::kRope] +=
        {.bytes = 4 * size.rows * 2 * (config.q_width() + config.kv_width())};
    if (mlp_rows == 0) continue;
    activations[step_part::kAttention] += {.bytes = 8 * size.rows * config.q_width()};
    if (config.experts > 0) continue;  // part of the experts' products
    activations[step_part::kActivation] +=
        {.bytes = 12 * mlp_rows * config.mlp_width, .flops = 6 * mlp_rows * config.mlp_width};
  }
  if (size.logit_rows > 0)
    activations[step_part::kSampling] += {.bytes = 4 * size.logit_rows * config.vocabulary};
}

struct SplitCosts {
  StepCosts memory;       // weights and KV
  StepCosts activations;  // values passed from kernel to kernel
};

SplitCosts split_costs(const ModelPlan& model, const ModelFile& file, KvFormat kv,
                       const StepBatch& batch) {
  const StepSize size{.rows = static_cast<double>(batch.ids.size()),
                      .logit_rows = static_cast<double>(batch.logit_rows.size()),
                      .layers = model.config.layers};
  SplitCosts costs;
  add_weights(model, file, size, costs.memory, costs.activations);
  add_attention(model.config, kv, size, batch, costs.memory);
  add_small_parts(model.config, size, costs.activations);
  return costs;
}

}  // namespace

StepCosts step_costs(const ModelPlan& model, const ModelFile& file, KvFormat kv,
                     const StepBatch& batch) {
  SplitCosts costs = split_costs(model, file, kv, batch);
  for (const auto& [part, cost] : costs.activations) costs.memory[part] += cost;
  return costs.memory;
}

Cost whole_step_cost(const ModelPlan& model, const ModelFile& file, KvFormat kv,
                     const StepBatch& batch) {
  const SplitCosts costs = split_costs(model, file, kv, batch);
  Cost whole;
  for (const auto& [part, cost] : costs.memory) whole += cost;
  for (const auto& [part, cost] : costs.activations) whole.flops += cost.flops;
  return whole;
}

}  // namespace hearth
