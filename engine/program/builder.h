// With this an architecture emits the ops of a layer. Each call appends one op; the calls of a
// layer read like its formula. Values and roles are named in op.h and weight_table.h.
//
// If ranks divide every layer, the formula is the same with this rank's heads, columns and tokens.
// Where a product has only some of the columns of its inputs, the builder adds the sum over all
// ranks. What is added to is then added by the first rank alone. If ranks share KV blocks, it adds
// the merging of their attention.
#pragma once

#include <optional>
#include <vector>

#include "engine/model/model_config.h"
#include "engine/program/op.h"

namespace hearth {

class Builder {
 public:
  // Every op computes `rows` rows. REQUIRES: `config` outlives the builder.
  Builder(const ModelConfig& config, uint32_t rows) : config_(config), rows_(rows) {}

  const ModelConfig& config() const { return config_; }
  // The layer that the following ops belong to.
  uint32_t layer() const { return layer_; }
  void begin_layer(uint32_t layer) { layer_ = layer; }
  // The following ops belong to no layer.
  void end_layers() { layer_ = kNoLayer; }

  // hidden = the embeddings of the step's ids
  void embed();
  // y = norm(x)
  void norm(Value y, Value x, WeightRole weight);
  // y += x. REQUIRES: the next op is a norm of y, which does the adding.
  void add(Value y, Value x);
  // y = weight * x + bias, or, for add_product, y += weight * x + bias
  void product(Value y, Value x, WeightRole weight, std::optional<WeightRole> bias = {});
  void add_product(Value y, Value x, WeightRole weight, std::optional<WeightRole> bias = {});
  // queries = rope(q), with norms of heads if the model has them; k and v go to the cache.
  void rope_kv(WeightRole qkv = WeightRole::kQkv);
  // attended = attention(queries, cache)
  void attention();
  // mlp = activation(gate) * up, both from gate_up
  void activation(WeightRole gate_up = WeightRole::kGateUp);
  // y += experts(x), chosen by `routed`. REQUIRES: the model's activation is SiLU, limited or not.
  void add_experts(Value y, Value x, Value routed);
  // logits = cap(weight * normed)
  void logits(WeightRole weight);

  // Any other op.
  void append(std::string_view part, decltype(Op::what) what) {
    ops_.push_back({.part = part, .layer = layer_, .rows = rows_, .what = std::move(what)});
  }
  std::vector<Op> take() { return std::move(ops_); }

 private:
  void append_product(ProductOp op, std::optional<WeightRole> bias, bool sum_adds);
  // y = the sum of all ranks' y, if there are several; `adds`: what y was before is part of it
  void sum(Value y, bool adds = false);
  WeightName name(WeightRole role) const { return {role, layer_ == kNoLayer ? 0 : layer_}; }

  const ModelConfig& config_;
  uint32_t rows_;
  uint32_t layer_ = kNoLayer;
  std::vector<Op> ops_;
};

}  // namespace hearth
