// The least that a step of a model must move and compute, part by part, to compare with the
// device's ceilings. Pure.
#pragma once

#include <map>
#include <string_view>

#include "engine/model/model.h"
#include "engine/model/step_batch.h"
#include "engine/ops/paged_kv.h"
#include "engine/weights/model_file.h"

namespace hearth {

struct Cost {
  double bytes = 0;  // weights, KV and activations, each counted once per part
  double flops = 0;

  Cost& operator+=(const Cost& other) {
    bytes += other.bytes;
    flops += other.flops;
    return *this;
  }
};

// By the parts that program/op.h names, summed over all layers.
using StepCosts = std::map<std::string_view, Cost>;
StepCosts step_costs(const ModelPlan& model, const ModelFile& file, KvFormat kv,
                     const StepBatch& batch);

// What a whole step needs if activations stay in caches: the weights and the KV, each read once.
Cost whole_step_cost(const ModelPlan& model, const ModelFile& file, KvFormat kv,
                     const StepBatch& batch);

}  // namespace hearth
