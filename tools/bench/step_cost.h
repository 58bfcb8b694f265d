// What a step of a model must at least move and do, part by part: to be held against the device's
// ceilings. Pure.
#pragma once

#include <map>
#include <string_view>

#include "engine/model/model.h"
#include "engine/model/step_batch.h"
#include "engine/ops/paged_kv.h"
#include "engine/weights/model_file.h"

namespace hearth {

struct Cost {
  double bytes = 0;  // weights, KV and activations, each once a part
  double flops = 0;

  Cost& operator+=(const Cost& other) {
    bytes += other.bytes;
    flops += other.flops;
    return *this;
  }
};

// By the parts of forward.h, over all layers.
using StepCosts = std::map<std::string_view, Cost>;
StepCosts step_costs(const ModelPlan& model, const ModelFile& file, KvFormat kv,
                     const StepBatch& batch);

// What a whole step needs if activations stay in caches: weights and KV once each.
Cost whole_step_cost(const ModelPlan& model, const ModelFile& file, KvFormat kv,
                     const StepBatch& batch);

}  // namespace hearth
