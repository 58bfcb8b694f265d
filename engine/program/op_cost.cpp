#include "engine/program/op_cost.h"

#include "engine/ops/embed.h"
#include "engine/ops/experts.h"
#include "engine/ops/gather_rows.h"
#include "engine/ops/hidden_rows.h"
#include "engine/ops/matmul.h"
#include "engine/ops/mlp.h"
#include "engine/ops/norm.h"
#include "engine/ops/pool_rows.h"
#include "engine/ops/rope.h"

namespace hearth {
namespace {

class OpCosts {
 public:
  OpCosts(const CostInput& input, uint32_t rows) : input_(input), rows_(rows) {}

  OpCost operator()(const EmbedOp& op) const {
    const SegmentShape& table = input_.weights.get(op.weight).front();
    return embed_cost({.format = table.format, .rows = rows_, .width = table.cols});
  }

  OpCost operator()(const NormOp& op) const {
    return rms_norm_cost({.rows = rows_, .width = op.width});
  }

  // What a norm that also adds costs more than one that does not.
  OpCost operator()(const AddOp& op) const {
    const OpCost cost = rms_norm_cost({.rows = rows_, .width = op.width, .residuals = 1});
    const OpCost norm = rms_norm_cost({.rows = rows_, .width = op.width});
    return {.activation_bytes = cost.activation_bytes - norm.activation_bytes,
            .operations = cost.operations - norm.operations};
  }

  OpCost operator()(const ProductOp& op) const {
    OpCost cost{.memory_bytes = op.bias ? vector_bytes(*op.bias) : 0};
    for (const SegmentShape& segment : input_.weights.get(op.weight))
      cost += matmul_cost({.format = segment.format,
                           .rows = rows_,
                           .inputs = segment.cols,
                           .outputs = segment.rows});
    return cost;
  }

  OpCost operator()(const RopeKvOp& op) const {
    RopeKvShape shape = op.shape;
    shape.rows = rows_;
    shape.kv = input_.attention.kv;
    OpCost cost = rope_kv_cost(shape);
    for (const std::optional<WeightName>& norm : {op.q_norm, op.k_norm})
      if (norm) cost.memory_bytes += vector_bytes(*norm);
    return cost;
  }

  OpCost operator()(const AttentionOp& op) const {
    OpCost cost = attention_cost(input_.attention, input_.sequences, op.window);
    if (op.sinks) cost.memory_bytes += vector_bytes(*op.sinks);
    return cost;
  }

  OpCost operator()(const ActivationOp& op) const {
    return mlp_cost({.rows = rows_, .width = op.width});
  }

  OpCost operator()(const ExpertsOp& op) const {
    ExpertsShape shape = op.shape;
    shape.rows = rows_;
    shape.gate_up = input_.weights.get(op.gate_up).front().format;
    shape.down = input_.weights.get(op.down).front().format;
    OpCost cost = experts_cost(shape);
    cost.memory_bytes += touched_experts(shape) / shape.experts *
                         (vector_bytes(op.gate_up_bias) + vector_bytes(op.down_bias));
    return cost;
  }

  OpCost operator()(const PickOp& op) const {
    return gather_rows_cost({.rows = rows_, .width = op.width, .source_rows = op.source_rows});
  }

  OpCost operator()(const PoolOp& op) const {
    return pool_rows_cost({.ranges = op.ranges, .width = op.width, .rows = rows_});
  }

  OpCost operator()(const KeepOp& op) const {
    return keep_hidden_cost({.rows = rows_, .width = op.width});
  }

  OpCost operator()(const ClearOp& op) const {
    return {.activation_bytes = 4.0 * rows_ * op.width};
  }

  // How much is kept to compare with is not known here, and what ranks exchange is no kernel's.
  OpCost operator()(const CompareOp&) const { return {}; }
  OpCost operator()(const SumOp&) const { return {}; }
  OpCost operator()(const GatherOp&) const { return {}; }
  OpCost operator()(const JoinOp&) const { return {}; }
  OpCost operator()(const MergeOp&) const { return {}; }

 private:
  // Of a weight in F32, if the file has it.
  double vector_bytes(const WeightName& name) const {
    double values = 0;
    for (const SegmentShape& segment : input_.weights.get(name))
      values += 1.0 * segment.rows * segment.cols;
    return 4 * values;
  }

  const CostInput& input_;
  uint32_t rows_;
};

}  // namespace

OpCost op_cost(const CostInput& input, const Op& op) {
  return std::visit(OpCosts(input, op.rows), op.what);
}

PartCosts part_costs(const CostInput& input, std::span<const Op> ops) {
  PartCosts costs;
  for (const Op& op : ops) costs[op.part] += op_cost(input, op);
  return costs;
}

}  // namespace hearth
