// Plans of made-up models for devices that we do not have, without a device.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "engine/model/model.h"
#include "engine/model/step_planner.h"
#include "engine/program/device_profiles.h"
#include "tests/support/made_model.h"

namespace hearth::testing {

// The shape of a llama-8b. Three layers: the first, the last, and one of the others, which are
// alike.
inline MadeModelInfo llama_8b_shape() {
  return {.architecture = "llama",
          .layers = 3,
          .width = 4096,
          .heads = 32,
          .kv_heads = 8,
          .head_size = 128,
          .mlp_width = 14336,
          .vocabulary = 128256,
          .context = 8192};
}

class PlannedModel {
 public:
  static Result<std::unique_ptr<PlannedModel>> create(const MadeModelInfo& info,
                                                      const TensorShard& shard = {},
                                                      const BlockDeal& deal = {}) {
    std::unique_ptr<PlannedModel> planned(new PlannedModel());
    HEARTH_ASSIGN(planned->file_, MadeModel::header(info));
    HEARTH_ASSIGN(planned->model_, plan_model(*planned->file_, {}, shard, deal));
    return planned;
  }

  StepPlan plan(const DeviceCaps& caps, const StepBucket& bucket, bool fusion = true,
                uint32_t divided_rows = 0) const {
    const StepLimits limits{.rows = 2048,
                            .sequences = 64,
                            .logit_rows = 64,
                            .context = model_.config.context,
                            .divided_rows = divided_rows};
    const ActivationSizes sizes = activation_sizes(caps, model_.config, model_.matmuls, limits);
    const StepPlanner planner({.caps = caps,
                               .model = model_,
                               .limits = limits,
                               .matmul_scratch_bytes = sizes.matmul_scratch,
                               .fusion = fusion});
    return planner.plan(bucket);
  }
  const ModelPlan& model() const { return model_; }

 private:
  PlannedModel() = default;

  std::unique_ptr<MadeModel> file_;
  ModelPlan model_;
};

// A step of `sequences` sequences with `rows` rows each; the last row of each wants logits.
inline StepBucket step_of(uint32_t sequences, uint32_t rows, uint32_t context = 100) {
  StepBucket bucket = choose_bucket(sequences * rows, sequences, rows, sequences);
  bucket.context = bucket_context(context + rows);
  bucket.greedy = true;
  return bucket;
}

}  // namespace hearth::testing
