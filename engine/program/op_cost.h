// What the ops of a step must move and compute at the least, from the costs that `ops/` has for
// each kind of op. Pure, and the same whatever kernels run them. For shares of a device's ceilings.
#pragma once

#include <map>
#include <span>
#include <string_view>

#include "engine/ops/attention.h"
#include "engine/ops/cost.h"
#include "engine/program/op.h"
#include "engine/program/weight_shapes.h"

namespace hearth {

struct CostInput {
  const WeightShapes& weights;
  AttentionShape attention;                         // of all layers
  std::span<const params::StepSequence> sequences;  // of the step, whose rows the ops compute
};

// REQUIRES: the weights of the op are known.
OpCost op_cost(const CostInput& input, const Op& op);

// By the parts of a step, summed over all layers.
using PartCosts = std::map<std::string_view, OpCost>;
PartCosts part_costs(const CostInput& input, std::span<const Op> ops);

}  // namespace hearth
