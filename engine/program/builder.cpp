#include "engine/program/builder.h"

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
    default:
      return step_part::kLogits;
  }
}

}  // namespace

void Builder::embed() {
  append(step_part::kEmbed,
         EmbedOp{.weight = name(WeightRole::kEmbedding), .scale = config_.embed_scale});
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
  ProductOp op{.y = y, .x = x, .weight = name(weight)};
  if (bias) op.bias = name(*bias);
  append(product_part(weight), op);
}

void Builder::add_product(Value y, Value x, WeightRole weight, std::optional<WeightRole> bias) {
  product(y, x, weight, bias);
  std::get<ProductOp>(ops_.back().what).adds = true;
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
  append(step_part::kAttention, AttentionOp{.width = config_.q_width(),
                                            .window = config_.layer_window(layer_),
                                            .scale = config_.attention_scale,
                                            .soft_cap = config_.attention_soft_cap});
}

void Builder::activation(WeightRole gate_up) {
  append(step_part::kActivation, ActivationOp{.weight = name(gate_up),
                                              .width = config_.mlp_width,
                                              .activation = config_.activation});
}

void Builder::logits(WeightRole weight) {
  append(step_part::kLogits, ProductOp{.y = Value::kLogits,
                                       .x = Value::kNormed,
                                       .weight = name(weight),
                                       .soft_cap = config_.logit_soft_cap});
}

}  // namespace hearth
