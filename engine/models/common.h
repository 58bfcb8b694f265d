// What most architectures share: the usual tensors, and the two kinds of layers, with norms before
// attention and MLP, or before and after them.
#pragma once

#include "engine/model/architecture.h"
#include "engine/model/weight_table.h"
#include "engine/program/builder.h"

namespace hearth {

// Embedding, final norm, output matrix (if absent, the embedding is used).
inline void add_model_weights(WeightTable& table, const ModelConfig& config) {
  table.matrix(WeightRole::kEmbedding, 0, {{"token_embd.weight", config.vocabulary}}, config.width);
  table.vector(WeightRole::kOutputNorm, 0, {{"output_norm.weight", config.width}});
  table.optional_matrix(WeightRole::kOutput, 0, {{"output.weight", config.vocabulary}},
                        config.width);
}

// Norm, q, k and v as one weight, and the output projection.
inline void add_attention_weights(WeightTable& table, const ModelConfig& config, uint32_t layer) {
  table.vector(WeightRole::kAttentionNorm, layer,
               {{layer_tensor(layer, "attn_norm.weight"), config.width}});
  table.matrix(WeightRole::kQkv, layer,
               {{layer_tensor(layer, "attn_q.weight"), config.q_width()},
                {layer_tensor(layer, "attn_k.weight"), config.kv_width()},
                {layer_tensor(layer, "attn_v.weight"), config.kv_width()}},
               config.width);
  table.matrix(WeightRole::kAttentionOut, layer,
               {{layer_tensor(layer, "attn_output.weight"), config.width}}, config.q_width());
}

inline void add_optional_attention_biases(WeightTable& table, const ModelConfig& config,
                                          uint32_t layer) {
  table.optional_vector(WeightRole::kQkvBias, layer,
                        {{layer_tensor(layer, "attn_q.bias"), config.q_width()},
                         {layer_tensor(layer, "attn_k.bias"), config.kv_width()},
                         {layer_tensor(layer, "attn_v.bias"), config.kv_width()}});
  table.optional_vector(WeightRole::kAttentionOutBias, layer,
                        {{layer_tensor(layer, "attn_output.bias"), config.width}});
}

// Norms of each q and k head.
inline void add_head_norms(WeightTable& table, const ModelConfig& config, uint32_t layer) {
  table.vector(WeightRole::kQNorm, layer,
               {{layer_tensor(layer, "attn_q_norm.weight"), config.head_size}});
  table.vector(WeightRole::kKNorm, layer,
               {{layer_tensor(layer, "attn_k_norm.weight"), config.head_size}});
}

// Norm, gate and up as one weight, and the down projection.
inline void add_mlp_weights(WeightTable& table, const ModelConfig& config, uint32_t layer) {
  table.vector(WeightRole::kMlpNorm, layer,
               {{layer_tensor(layer, "ffn_norm.weight"), config.width}});
  table.matrix(WeightRole::kGateUp, layer,
               {{layer_tensor(layer, "ffn_gate.weight"), config.mlp_width},
                {layer_tensor(layer, "ffn_up.weight"), config.mlp_width}},
               config.width);
  table.matrix(WeightRole::kDown, layer, {{layer_tensor(layer, "ffn_down.weight"), config.width}},
               config.mlp_width);
}

// Norms after attention and after the MLP.
inline void add_post_norms(WeightTable& table, const ModelConfig& config, uint32_t layer) {
  table.vector(WeightRole::kAttentionPostNorm, layer,
               {{layer_tensor(layer, "post_attention_norm.weight"), config.width}});
  table.vector(WeightRole::kMlpPostNorm, layer,
               {{layer_tensor(layer, "post_ffw_norm.weight"), config.width}});
}

// attended = attention(norm(hidden))
inline void emit_attention(Builder& builder) {
  builder.norm(Value::kNormed, Value::kHidden, WeightRole::kAttentionNorm);
  builder.product(Value::kQkv, Value::kNormed, WeightRole::kQkv, WeightRole::kQkvBias);
  builder.rope_kv();
  builder.attention();
}

// mlp = activation(gate * norm(hidden)) . (up * norm(hidden))
inline void emit_mlp(Builder& builder) {
  builder.norm(Value::kNormed, Value::kHidden, WeightRole::kMlpNorm);
  builder.product(Value::kGateUp, Value::kNormed, WeightRole::kGateUp);
  builder.activation();
}

// hidden += attention(norm(hidden)); hidden += mlp(norm(hidden))
inline void emit_pre_norm_layer(Builder& builder) {
  emit_attention(builder);
  builder.add_product(Value::kHidden, Value::kAttended, WeightRole::kAttentionOut,
                      WeightRole::kAttentionOutBias);
  emit_mlp(builder);
  builder.add_product(Value::kHidden, Value::kMlp, WeightRole::kDown);
}

// hidden += norm(attention(norm(hidden))); hidden += norm(mlp(norm(hidden)))
inline void emit_sandwich_norm_layer(Builder& builder) {
  emit_attention(builder);
  builder.product(Value::kProjected, Value::kAttended, WeightRole::kAttentionOut);
  builder.norm(Value::kProjected, Value::kProjected, WeightRole::kAttentionPostNorm);
  builder.add(Value::kHidden, Value::kProjected);
  emit_mlp(builder);
  builder.product(Value::kProjected, Value::kMlp, WeightRole::kDown);
  builder.norm(Value::kProjected, Value::kProjected, WeightRole::kMlpPostNorm);
  builder.add(Value::kHidden, Value::kProjected);
}

}  // namespace hearth
