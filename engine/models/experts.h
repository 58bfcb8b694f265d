// What architectures with a mixture of experts share: the tensors, and the second half of a layer.
#pragma once

#include "engine/model/weight_table.h"
#include "engine/models/common.h"
#include "engine/program/builder.h"

namespace hearth {

// Router, and the gated MLPs of all experts; biases if the file has them.
inline void add_expert_weights(WeightTable& table, const ModelConfig& config, uint32_t layer) {
  table.f32_matrix(WeightRole::kRouter, layer,
                   {layer_tensor(layer, "ffn_gate_inp.weight"), config.experts}, config.width);
  table.optional_vector(WeightRole::kRouterBias, layer,
                        {{layer_tensor(layer, "ffn_gate_inp.bias"), config.experts}});
  const WeightTable::ExpertMatrices gate_up{.projections = {"ffn_gate", "ffn_up"},
                                            .experts = config.experts,
                                            .rows = config.mlp_width,
                                            .cols = config.width,
                                            .split = config.split_experts};
  const WeightTable::ExpertMatrices down{.projections = {"ffn_down"},
                                         .experts = config.experts,
                                         .rows = config.width,
                                         .cols = config.mlp_width,
                                         .split = config.split_experts};
  table.expert_matrices(WeightRole::kExpertGateUp, layer, gate_up);
  table.optional_expert_biases(WeightRole::kExpertGateUpBias, layer, gate_up);
  table.expert_matrices(WeightRole::kExpertDown, layer, down);
  table.optional_expert_biases(WeightRole::kExpertDownBias, layer, down);
}

// hidden += attention(norm(hidden)); hidden += experts(norm(hidden))
inline void emit_experts_layer(Builder& builder) {
  emit_attention(builder);
  builder.add_product(Value::kHidden, Value::kAttended, WeightRole::kAttentionOut,
                      WeightRole::kAttentionOutBias);
  builder.norm(Value::kNormed, Value::kHidden, WeightRole::kMlpNorm);
  builder.product(Value::kRouted, Value::kNormed, WeightRole::kRouter, WeightRole::kRouterBias);
  builder.add_experts(Value::kHidden, Value::kNormed, Value::kRouted);
}

}  // namespace hearth
