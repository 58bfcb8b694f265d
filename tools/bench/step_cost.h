// The least that a step of a model must move and compute, part by part, to compare with the
// device's ceilings. Pure.
#pragma once

#include "engine/model/model.h"
#include "engine/model/step_batch.h"
#include "engine/ops/paged_kv.h"
#include "engine/program/op_cost.h"

namespace hearth {

struct Cost {
  double bytes = 0;
  double flops = 0;

  Cost& operator+=(const Cost& other) {
    bytes += other.bytes;
    flops += other.flops;
    return *this;
  }
};

// Of the layers that the device holds, and of sampling.
PartCosts step_costs(const ModelPlan& model, KvFormat kv, const StepBatch& batch);

// What a whole step needs if activations stay in caches: the weights and the KV, each read once.
Cost whole_step_cost(const ModelPlan& model, KvFormat kv, const StepBatch& batch);

}  // namespace hearth
