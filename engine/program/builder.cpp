#include "engine/program/builder.h"

#include <cassert>

namespace hearth {
namespace {

// How profiles label the product with a weight.
std::string_view product_part(WeightRole weight) {
  switch (weight) {
    case WeightRole::kQkv:
      return step_part::kQkv;
    case WeightRole::kAttentionOut:
      return step_part::kAttentionOut;
    case WeightRole::kGateUp:
      return step_part::kGateUp;
    case WeightRole::kDown:
      return step_part::kDown;
    case WeightRole::kRouter:
      return step_part::kRouter;
    default:
      return step_part::kLogits;
  }
}

// Whether ranks that divide a layer have different columns of the weight.
bool has_divided_columns(WeightRole weight) {
  return weight == WeightRole::kAttentionOut || weight == WeightRole::kDown;
}

}  // namespace

void Builder::embed() {
  append(step_part::kEmbed, EmbedOp{.weight = name(WeightRole::kEmbedding),
                                    .scale = config_.embed_scale,
                                    .first = config_.first_token});
  sum(Value::kHidden);
}

void Builder::sum(Value y, bool adds) {
  if (config_.shard.is_divided())
    append(step_part::kRanks, SumOp{.y = y, .width = config_.width, .adds = adds});
}

void Builder::norm(Value y, Value x, WeightRole weight) {
  append(step_part::kNorm, NormOp{.y = y,
                                  .x = x,
                                  .weight = name(weight),
                                  .width = config_.width,
                                  .epsilon = config_.norm_epsilon});
}

void Builder::add(Value y, Value x) {
  append(step_part::kNorm, AddOp{.y = y, .x = x, .width = config_.width});
}

void Builder::product(Value y, Value x, WeightRole weight, std::optional<WeightRole> bias) {
  append_product({.y = y, .x = x, .weight = name(weight)}, bias, false);
}

void Builder::add_product(Value y, Value x, WeightRole weight, std::optional<WeightRole> bias) {
  const bool adds = config_.shard.is_first() || !has_divided_columns(weight);
  append_product({.y = y, .x = x, .weight = name(weight), .adds = adds}, bias, true);
}

void Builder::append_product(ProductOp op, std::optional<WeightRole> bias, bool sum_adds) {
  if (bias) op.bias = name(*bias);
  append(product_part(op.weight.role), op);
  if (has_divided_columns(op.weight.role)) sum(op.y, sum_adds);
}

void Builder::rope_kv(WeightRole qkv) {
  RopeKvOp op{.weight = name(qkv),
              .shape = {.heads = config_.heads,
                        .kv_heads = config_.kv_heads,
                        .head_size = config_.head_size,
                        .rope_dims = config_.rope_dims,
                        .pairs = config_.rope_pairs,
                        .head_norms = config_.head_norms},
              .window_table = config_.layer_is_windowed(layer_),
              .epsilon = config_.norm_epsilon};
  if (config_.head_norms) {
    op.q_norm = name(WeightRole::kQNorm);
    op.k_norm = name(WeightRole::kKNorm);
  }
  append(step_part::kRope, op);
}

void Builder::attention() {
  AttentionOp op{.width = config_.q_width(),
                 .window = config_.layer_window(layer_),
                 .scale = config_.attention_scale,
                 .soft_cap = config_.attention_soft_cap};
  if (config_.attention_sinks) op.sinks = name(WeightRole::kSinks);
  if (config_.deal.is_divided()) op.y = Value::kAttentionSums;
  append(step_part::kAttention, op);
  if (config_.deal.is_divided())
    append(step_part::kRanks, MergeOp{.heads = config_.heads, .head_size = config_.head_size});
}

void Builder::activation(WeightRole gate_up) {
  append(step_part::kActivation, ActivationOp{.weight = name(gate_up),
                                              .width = config_.mlp_width,
                                              .activation = config_.activation});
}

void Builder::add_experts(Value y, Value x, Value routed) {
  assert(config_.activation == MlpActivation::kSilu && "experts have no other activation");
  if (!config_.shard.is_first()) append(step_part::kRanks, ClearOp{.y = y, .width = config_.width});
  append(step_part::kExperts,
         ExpertsOp{.y = y,
                   .x = x,
                   .routed = routed,
                   .gate_up = name(WeightRole::kExpertGateUp),
                   .gate_up_bias = name(WeightRole::kExpertGateUpBias),
                   .down = name(WeightRole::kExpertDown),
                   .down_bias = name(WeightRole::kExpertDownBias),
                   .shape = {.experts = config_.experts,
                             .used = config_.used_experts,
                             .width = config_.width,
                             .mlp_width = config_.mlp_width,
                             .activation = config_.limited_activation ? ExpertActivation::kLimited
                                                                      : ExpertActivation::kSilu,
                             .over_all = config_.weights_over_all}});
  sum(y, true);
}

void Builder::logits(WeightRole weight) {
  append(step_part::kLogits, ProductOp{.y = Value::kLogits,
                                       .x = Value::kNormed,
                                       .weight = name(weight),
                                       .soft_cap = config_.logit_soft_cap});
}

}  // namespace hearth
